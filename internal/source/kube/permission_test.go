package kube_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/permission"
	"github.com/headgate/headgate/internal/source/kube"
)

// TestPermissions: all that is asked for is declared, and nothing is declared
// that is not asked for.
func TestPermissions(t *testing.T) {
	for about, edit := range map[string]func(*kube.Settings){
		"all namespaces": func(s *kube.Settings) { s.ConfigMap = types.NamespacedName{} },
		"a ConfigMap":    func(*kube.Settings) {},
		"TCP and UDP services": func(s *kube.Settings) {
			s.Namespace = "shop"
			s.Services = []types.NamespacedName{{Namespace: "headgate", Name: "tcp"}, {Namespace: "headgate", Name: "udp"}, {Namespace: "headgate", Name: "tcp"}, s.ConfigMap, {}}
		},
		"one namespace":       func(s *kube.Settings) { s.Namespace = "shop" },
		"selected namespaces": func(s *kube.Settings) { s.Namespaces = true },
		"a zone":              func(s *kube.Settings) { s.Pod = types.NamespacedName{Namespace: "headgate", Name: "here"} },
	} {
		t.Run(about, func(t *testing.T) {
			a := newAPIServer(t)
			fill(a)
			a.put(pod("here", "self"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "self"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
			var settings kube.Settings
			w := start(t, a, func(s *kube.Settings) { edit(s); settings = *s })
			w.await("the first batch", func() bool { return len(w.batches) > 0 })
			w.await("the Node", func() bool { return settings.Pod.Name == "" || w.objects["Node /self"] != nil })
			<-w.source.SubscribeSecrets([]types.NamespacedName{{Namespace: "shop", Name: "other"}}, nil)
			<-w.source.SubscribeConfigMaps([]types.NamespacedName{{Namespace: "shop", Name: "other"}}, nil)
			w.stop()
			a.mu.Lock()
			defer a.mu.Unlock()
			asked := map[string]bool{}
			for _, request := range a.requests {
				permission, verb, ok := grant(kube.Permissions(settings), request)
				if !ok {
					t.Errorf("%q is asked for and not declared", request)
				}
				asked[verb+permission.Need] = true
			}
			for _, p := range kube.Permissions(settings) {
				for verb := range strings.FieldsSeq(p.Verbs) {
					// An API server that can streams lists, as watches.
					if verb != "list" && !asked[verb+p.Need] {
						t.Errorf("%s %s (%s) is declared and not asked for", verb, p, p.Need)
					}
				}
			}
		})
	}
}

// grant finds the permission that allows a request, "verb resource namespace
// selector". The selector distinguishes those of Secrets.
func grant(all []permission.Permission, request string) (permission.Permission, string, bool) {
	parts := strings.SplitN(request+"   ", " ", 4)
	verb, resource, namespace, selector := parts[0], parts[1], parts[2], parts[3]
	for _, p := range all {
		if p.Resource != resource || !slices.Contains(strings.Fields(p.Verbs), verb) {
			continue
		}
		if p.Namespace != "" && p.Namespace != namespace && resource != "namespaces" {
			continue
		}
		if p.Name != "" && verb != "get" && !strings.Contains(selector, "metadata.name="+p.Name) {
			continue
		}
		if resource == "secrets" && strings.Contains(p.Need, "TLS") != strings.Contains(selector, "type=kubernetes.io/tls") {
			continue
		}
		return p, verb, true
	}
	return permission.Permission{}, verb, false
}

// TestUID: the newest object's identity is known, of those alone that are there.
func TestUID(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	for _, c := range []struct {
		resource, namespace, name string
		there                     bool
	}{
		{"ingresses", "shop", "web", true}, {"services", "shop", "one", true}, {"configmaps", "headgate", "options", true},
		{"secrets", "shop", "tls", true}, {"secrets", "shop", "other", true},
		{"ingresses", "shop", "one", false}, {"configmaps", "headgate", "foreign", false}, {"pods", "shop", "web", false},
	} {
		name := types.NamespacedName{Namespace: c.namespace, Name: c.name}
		a.mu.Lock()
		want := types.UID("")
		if c.there {
			want = a.objects[c.resource+"/"+name.String()].object.GetUID()
		}
		a.mu.Unlock()
		if got := w.source.UID(c.resource, name); got != want || c.there && got == "" {
			t.Errorf("%s %s has the UID %q, want %q", c.resource, name, got, want)
		}
	}
}
