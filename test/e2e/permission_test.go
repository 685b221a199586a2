package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// The log names a missing permission and what needs it. Once it is granted, no
// restart is needed.
func TestMissingPermission(t *testing.T) {
	h := newHeadgate(t)
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	host := h.host("web")
	pair := h.createSecret("web", host)
	h.createIngress(h.ingress("web", host, "/", "web", "web"))
	grant := h.actAsServiceAccount(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
	)
	h.start()
	for _, verb := range []string{"list", "watch"} {
		h.awaitLog("a permission is missing", "verb="+verb, "resource=secrets", `needed="to read the certificates in TLS Secrets"`)
	}
	h.awaitNotReady()
	if _, err := h.get(t.Context(), "http://"+host+"/"); err == nil {
		t.Error("a request is answered before the controller has all objects")
	}
	grant(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}})
	h.awaitReady()
	h.want("https://"+host+"/", showing(pair, "web"))
	h.awaitLog("the request succeeds again", "resource=secrets")
	// It serves without the Lease too.
	h.awaitLog("cannot use the Lease of the leader election", "verb=get")
}

// Without an optional permission, Headgate runs without what needs it, and logs
// that.
func TestMissingOptionalPermissions(t *testing.T) {
	h := newHeadgate(t)
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	h.createPod()
	ing := h.ingress("web", h.host("web"), "/", "web", "")
	ing.Spec.IngressClassName = nil
	ing.Annotations = map[string]string{"kubernetes.io/ingress.class": h.class, bodySize: "large"}
	h.createIngress(ing)
	follow := []string{"list", "watch"}
	h.actAsServiceAccount(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "secrets"}, Verbs: follow},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses"}, Verbs: follow},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: follow},
	)
	h.args = append(h.args, "--watch-namespace", h.class, "--enable-topology-aware-routing")
	h.start()
	h.awaitReady()
	h.want("http://"+h.host("web")+"/", from("web"))
	for _, resource := range []string{"ingressclasses.networking.k8s.io", "namespaces", "events", "pods"} {
		h.awaitLog("a permission is missing", "resource="+resource, "needed=", "without=")
	}
}

// Headgate runs with the roles that it prints and no others, for each source of
// the addresses in the status of Ingresses.
func TestPrintedRoles(t *testing.T) {
	for name, flags := range map[string][]string{
		"cluster":   {"--enable-topology-aware-routing", "--publish-status-address", "192.0.2.10"},
		"selected":  {"--watch-namespace-selector", "headgate.invalid/test=printed", "--publish-service", "CLASS/web"},
		"namespace": {"--watch-namespace", "CLASS"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeadgate(t)
			for _, flag := range append(flags, "--configmap", "CLASS/options") {
				h.args = append(h.args, strings.ReplaceAll(flag, "CLASS", h.class))
			}
			h.label(h.class, "headgate.invalid/test", "printed")
			must[*corev1.ConfigMap](h)(h.cluster.Client().CoreV1().ConfigMaps(h.class).Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "options"}, Data: map[string]string{"ssl-redirect": "false", "no-such-key": "x"},
			}, metav1.CreateOptions{}))
			h.createClass(h.class, controllerClass(h.class))
			h.createBackend("web")
			host := h.host("web")
			pair := h.createSecret("web", host)
			h.createNode(h.class, "192.0.2.30", "10.1.0.1")
			pod := h.createReadyPod("headgate", h.class, "headgate")
			h.env = append(h.env, "POD_NAME=headgate", "POD_NAMESPACE="+h.class)
			service := must[*corev1.Service](h)(h.cluster.Client().CoreV1().Services(h.class).Get(t.Context(), "web", metav1.GetOptions{}))
			address := map[string]string{"cluster": "192.0.2.10", "selected": service.Spec.ClusterIP, "namespace": "192.0.2.30"}[name]
			h.actAsPrinted()
			h.start()
			h.awaitReady()
			web := h.ingress("web", host, "/", "web", "web")
			web = h.putIngress(web, map[string]string{bodySize: "large", "nginx.ingress.kubernetes.io/proxy-buffering": "on"})
			h.await("https://"+host+"/", showing(pair, "web"))
			h.want("http://"+host+"/", from("web"))
			h.awaitEvents("Ingress", web, wrong, synced)
			h.awaitEvents("Pod", pod, "RELOAD Normal 1 ")
			h.awaitShown(address, "web")
			h.stop()
			h.awaitShown("", "web")
			if strings.Contains(h.log(), "permission") {
				t.Error("the log mentions permissions")
			}
		})
	}
}

// createPod creates a Pod that never runs, and starts Headgate with its name.
func (h *headgate) createPod() *corev1.Pod {
	h.t.Helper()
	h.env = append(h.env, "POD_NAME=headgate", "POD_NAMESPACE="+h.class)
	return must[*corev1.Pod](h)(h.cluster.Client().CoreV1().Pods(h.class).Create(h.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Spec:       corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "headgate", Image: "headgate.invalid/none"}}},
	}, metav1.CreateOptions{}))
}

// actAsPrinted has the controller use the ServiceAccount and the roles that
// "headgate rbac" prints for the same flags.
func (h *headgate) actAsPrinted() {
	h.t.Helper()
	path, err := headgateBuild.program()
	if err != nil {
		h.t.Fatal(err)
	}
	args := append([]string{"rbac", "--namespace", h.class}, h.args...)
	text, err := exec.CommandContext(h.t.Context(), path, args...).Output()
	if err != nil {
		h.t.Fatalf("printing the roles: %v", err)
	}
	ctx, client := h.t.Context(), h.cluster.Client()
	var granted []*authorizationv1.ResourceAttributes
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			h.t.Fatalf("%v in\n%s", err, document)
		}
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			_, err = client.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.Role:
			granted = append(granted, sample(o.Namespace, o.Rules))
			_, err = client.RbacV1().Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = client.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRole:
			h.t.Cleanup(func() {
				_ = client.RbacV1().ClusterRoles().Delete(context.Background(), o.Name, metav1.DeleteOptions{})
			})
			granted = append(granted, sample("", o.Rules))
			_, err = client.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			h.t.Cleanup(func() {
				_ = client.RbacV1().ClusterRoleBindings().Delete(context.Background(), o.Name, metav1.DeleteOptions{})
			})
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
		default:
			err = fmt.Errorf("a %T is printed", o)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	for _, right := range granted {
		h.awaitAllowed("headgate", right)
	}
	h.account = "headgate"
}

// sample is one of the rights that the rules give.
func sample(namespace string, rules []rbacv1.PolicyRule) *authorizationv1.ResourceAttributes {
	rule := rules[0]
	right := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]}
	if len(rule.ResourceNames) > 0 {
		right.Name = rule.ResourceNames[0]
	}
	return &right
}

// awaitAllowed waits until the API server knows that a ServiceAccount of the
// test's namespace has the right.
func (h *headgate) awaitAllowed(account string, right *authorizationv1.ResourceAttributes) {
	h.t.Helper()
	user := "system:serviceaccount:" + h.class + ":" + account
	clustertest.Eventually(h.t, timeout, func(ctx context.Context) error {
		review, err := h.cluster.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: right},
		}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = fmt.Errorf("%s may not yet %v", user, right)
		}
		return err
	})
}

// actAsServiceAccount has the controller use a ServiceAccount with these rules.
// The function that it returns adds more.
func (h *headgate) actAsServiceAccount(rules ...rbacv1.PolicyRule) (grant func(rbacv1.PolicyRule)) {
	h.t.Helper()
	ctx, client := h.t.Context(), h.cluster.Client()
	const name = "headgate"
	must[*corev1.ServiceAccount](h)(client.CoreV1().ServiceAccounts(h.class).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{}))
	roles, bindings := client.RbacV1().ClusterRoles(), client.RbacV1().ClusterRoleBindings()
	role := must[*rbacv1.ClusterRole](h)(roles.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: h.class}, Rules: rules,
	}, metav1.CreateOptions{}))
	must[*rbacv1.ClusterRoleBinding](h)(bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: h.class},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: h.class, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: h.class},
	}, metav1.CreateOptions{}))
	h.t.Cleanup(func() {
		unbound := bindings.Delete(context.Background(), h.class, metav1.DeleteOptions{})
		if err := errors.Join(unbound, roles.Delete(context.Background(), h.class, metav1.DeleteOptions{})); err != nil {
			h.t.Error(err)
		}
	})
	h.account = name
	return func(rule rbacv1.PolicyRule) {
		h.t.Helper()
		role.Rules = append(role.Rules, rule)
		must[*rbacv1.ClusterRole](h)(roles.Update(ctx, role, metav1.UpdateOptions{}))
	}
}
