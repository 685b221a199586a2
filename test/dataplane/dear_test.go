package dataplane_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// pathsOf is an Ingress of dear.test with n paths.
func pathsOf(name, path string, n int, annotations map[string]string) *networkingv1.Ingress {
	kind := networkingv1.PathTypeImplementationSpecific
	rule := networkingv1.IngressRule{Host: "dear.test"}
	rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
	for i := range n {
		rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{
			Path: fmt.Sprintf(path, i), PathType: &kind, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
			},
		})
	}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: name, Annotations: annotations},
		Spec:       networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{rule}},
	}
}

func annotationsOf(list ...string) map[string]string {
	annotations := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		annotations["nginx.ingress.kubernetes.io/"+list[i]] = list[i+1]
	}
	return annotations
}

// TestDearHostsDoNotDelayOthers: the changes of one tenant come into effect as soon as
// without another one, who changes a host that takes long to build.
func TestDearHostsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	calls := []metav1.Object{pathsOf("expressions", "/x-%d/(.*)", 10_000, annotationsOf("use-regex", "true"))}
	for i := range 100 {
		calls = append(calls, pathsOf(fmt.Sprint("caller-", i), fmt.Sprintf("/caller-%d-%%d", i), 1, annotationsOf("auth-url", fmt.Sprintf("http://$host/auth-%d", i))))
	}
	for name, c := range map[string]struct {
		objects []metav1.Object
		every   time.Duration
	}{
		"calls of a host itself": {calls, 200 * time.Millisecond},
		"a host at its limit":    {[]metav1.Object{pathsOf("paths", "/p-%d", 5000, nil)}, 100 * time.Millisecond},
		"a host far beyond it":   {[]metav1.Object{pathsOf("paths", "/p-%d", 60_000, nil)}, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := headgatetest.Start(t, headgatetest.Options{Workers: 1})
			version := 0
			// change measures how long a tenant's change takes.
			change := func() time.Duration {
				version++
				want := fmt.Sprintf("https://next.test/%d", version)
				g.Put(headgatetest.Ingress("quick", "quick.test", "/", "web", "permanent-redirect: "+want))
				began := time.Now()
				headgatetest.Eventually(t, "the change", func() bool { return g.Get("quick.test", "/").Header.Get("Location") == want })
				return time.Since(began)
			}
			median := func() time.Duration {
				var list []time.Duration
				for range 15 {
					list = append(list, change())
					time.Sleep(70 * time.Millisecond)
				}
				slices.Sort(list)
				return list[len(list)/2]
			}
			change()
			idle := median()
			g.PutObjects(c.objects...)
			g.WaitSynced()

			stop, changes := make(chan struct{}), 0
			var changer sync.WaitGroup
			changer.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(c.every):
						changes++
						g.PutObjects(pathsOf("small", "/small-%d", 1, annotationsOf("permanent-redirect", fmt.Sprintf("https://next.test/%d", changes))))
					}
				}
			})
			meanwhile := median()
			close(stop)
			changer.Wait()
			t.Logf("half of the changes took %v, and %v during %d of another tenant", idle, meanwhile, changes)
			if meanwhile > 5*idle+250*time.Millisecond {
				t.Errorf("half of the changes took %v, and %v during those of another tenant", idle, meanwhile)
			}
			// The other tenant's come into effect too.
			g.WaitSynced()
			if got := g.Get("dear.test", "/small-0").Header.Get("Location"); got != fmt.Sprintf("https://next.test/%d", changes) && changes > 0 {
				t.Errorf("the other tenant's last change is not served: %q", got)
			}
		})
	}
}
