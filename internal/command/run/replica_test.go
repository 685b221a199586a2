package run

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/cluster/permission"
	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/command/rbac"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/clienttest"
)

// TestReplicaPermissions: all permissions that the election and the status use are
// declared, and no others.
func TestReplicaPermissions(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "headgate")
	t.Setenv("POD_NAME", "self")
	for about, edit := range map[string]func(*program){
		"addresses":           func(o *program) { o.PublishAddresses = "192.0.2.1" },
		"a Service":           func(o *program) { o.PublishService = "front/web" },
		"Nodes":               func(*program) {},
		"one namespace":       func(o *program) { o.WatchNamespace = "shop" },
		"no status":           func(o *program) { o.UpdateStatus = false },
		"addresses that stay": func(o *program) { o.PublishAddresses, o.UpdateStatusOnShutdown = "192.0.2.1", false },
		"Nodes' that stay":    func(o *program) { o.UpdateStatusOnShutdown, o.ElectionID = false, "other" },
		"edges' Nodes":        control("--edge-account=edges/edge"),
		"edges' that stay":    control("--edge-account=edges/edge --update-status-on-shutdown=false"),
		"without edges":       control("--edge-account=none/edge --publish-status-address=192.0.2.1"),
	} {
		t.Run(about, func(t *testing.T) {
			o := program{Options: option.Options{Status: option.Status{
				UpdateStatus: true, UpdateStatusOnShutdown: true, ElectionID: "leader", ElectionTTL: 2 * time.Second,
			}}}
			o.KubeAPIQPS = 1000
			edit(&o)
			declared := rbac.ElectionPermissions("headgate", o.ElectionID)
			if o.UpdateStatus {
				declared = append(declared, rbac.StatusPermissions(o.Options, "headgate")...)
			}
			asked := map[string]bool{}
			for _, action := range o.leadAndLeave(t) {
				need, ok := declares(declared, action)
				if !ok {
					t.Errorf("%s %s %s in namespace %q is asked for and not declared", action.GetVerb(), action.GetResource(), action.GetSubresource(), action.GetNamespace())
				}
				asked[action.GetVerb()+need] = true
			}
			for _, p := range declared {
				for verb := range strings.FieldsSeq(p.Verbs) {
					if !asked[verb+p.Need] {
						t.Errorf("%s %s (%s) is declared and not asked for", verb, p, p.Need)
					}
				}
			}
		})
	}
}

// control makes a program a control with flags.
func control(flags string) func(*program) {
	return func(o *program) {
		f := pflag.NewFlagSet("", pflag.PanicOnError)
		o.AddControl(f)
		// It panics.
		_ = f.Parse(append(strings.Fields(flags), "--election-id=leader", "--election-ttl=2s", "--kube-api-qps=1000"))
	}
}

// leadAndLeave makes a replica lead, write the status of an Ingress, renew its Lease
// and leave. It returns the requests.
func (o program) leadAndLeave(t *testing.T) []clienttesting.Action {
	t.Helper()
	web := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	cluster := fake.NewClientset(
		web,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "front", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "192.0.2.2"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.3"}},
		}},
		readyPod("headgate", "self"), readyPod("edges", "edge"),
	)
	r, err := o.replica(from{client: clienttest.Of(cluster)}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.selected(store.Selection{Put: []*networkingv1.Ingress{web}})
	serving := make(chan struct{})
	close(serving)
	r.run(serving)
	needs := []string{"update leases"}
	if o.UpdateStatus {
		needs = append(needs, "update ingresses")
	}
	did := func(what string) bool {
		return slices.ContainsFunc(cluster.Actions(), func(a clienttesting.Action) bool {
			return a.GetVerb()+" "+a.GetResource().Resource == what
		})
	}
	for deadline := time.Now().Add(20 * time.Second); !did(needs[0]) || !did(needs[len(needs)-1]); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not all of %q was asked for: %v", needs, cluster.Actions())
		}
	}
	<-r.leave(t.Context())
	return cluster.Actions()
}

func readyPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "headgate"}},
		Spec:       corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// declares finds the permission for a request.
func declares(all []permission.Permission, a clienttesting.Action) (need string, ok bool) {
	resource, name := a.GetResource().Resource, ""
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	switch asked := a.(type) {
	case clienttesting.GetAction:
		name = asked.GetName()
	case clienttesting.UpdateAction:
		if object, err := meta.Accessor(asked.GetObject()); err == nil {
			name = object.GetName()
		}
	}
	for _, p := range all {
		if p.Resource == resource && p.Group == a.GetResource().Group && slices.Contains(strings.Fields(p.Verbs), a.GetVerb()) &&
			(p.Namespace == "" || p.Namespace == a.GetNamespace()) && (p.Name == "" || p.Name == name) {
			return p.Need, true
		}
	}
	return "", false
}
