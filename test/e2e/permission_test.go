package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// A permission that is missing is named, with what needs it; granted, it needs
// no restart.
func TestMissingPermission(t *testing.T) {
	g := newGate(t)
	g.createClass(g.class, controllerClass(g.class))
	g.createBackend("web")
	host := g.host("web")
	pair := g.createSecret("web", host)
	g.createIngress(g.ingress("web", host, "/", "web", "web"))
	grant := g.actAsServiceAccount(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
	)
	g.start()
	for _, verb := range []string{"list", "watch"} {
		g.awaitLog("a permission is missing", "verb="+verb, "resource=secrets", `needed="to have the certificates of TLS Secrets"`)
	}
	g.awaitNotReady()
	if _, err := g.get(t.Context(), "http://"+host+"/"); err == nil {
		t.Error("something is served before all is known")
	}
	grant(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}})
	g.awaitReady()
	g.want("https://"+host+"/", showing(pair, "web"))
	g.awaitLog("the request succeeds again", "resource=secrets")
	// Without the Lease it serves all the same.
	g.awaitLog("cannot use the Lease of the leader election", "verb=get")
}

// A permission that is not required leaves what needs it out, which is told.
func TestMissingOptionalPermissions(t *testing.T) {
	g := newGate(t)
	g.createClass(g.class, controllerClass(g.class))
	g.createBackend("web")
	g.createPod()
	ing := g.ingress("web", g.host("web"), "/", "web", "")
	ing.Spec.IngressClassName = nil
	ing.Annotations = map[string]string{"kubernetes.io/ingress.class": g.class, bodySize: "large"}
	g.createIngress(ing)
	follow := []string{"list", "watch"}
	g.actAsServiceAccount(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "secrets"}, Verbs: follow},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses"}, Verbs: follow},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: follow},
	)
	g.args = append(g.args, "--watch-namespace", g.class, "--enable-topology-aware-routing")
	g.start()
	g.awaitReady()
	g.want("http://"+g.host("web")+"/", from("web"))
	for _, resource := range []string{"ingressclasses.networking.k8s.io", "namespaces", "events", "pods"} {
		g.awaitLog("a permission is missing", "resource="+resource, "needed=", "without=")
	}
}

// Headgate runs with the roles that it prints, and with nothing else, whatever
// the addresses in the status of Ingresses come from.
func TestPrintedRoles(t *testing.T) {
	for name, flags := range map[string][]string{
		"cluster":   {"--enable-topology-aware-routing", "--publish-status-address", "192.0.2.10"},
		"selected":  {"--watch-namespace-selector", "headgate.invalid/test=printed", "--publish-service", "CLASS/web"},
		"namespace": {"--watch-namespace", "CLASS"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			for _, flag := range append(flags, "--configmap", "CLASS/options") {
				g.args = append(g.args, strings.ReplaceAll(flag, "CLASS", g.class))
			}
			g.label(g.class, "headgate.invalid/test", "printed")
			must[*corev1.ConfigMap](g)(g.cluster.Client().CoreV1().ConfigMaps(g.class).Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "options"}, Data: map[string]string{"ssl-redirect": "false", "no-such-key": "x"},
			}, metav1.CreateOptions{}))
			g.createClass(g.class, controllerClass(g.class))
			g.createBackend("web")
			host := g.host("web")
			pair := g.createSecret("web", host)
			g.createNode(g.class, "192.0.2.30", "10.1.0.1")
			pod := g.createReadyPod("headgate", g.class, "gate")
			g.env = append(g.env, "POD_NAME=headgate", "POD_NAMESPACE="+g.class)
			service := must[*corev1.Service](g)(g.cluster.Client().CoreV1().Services(g.class).Get(t.Context(), "web", metav1.GetOptions{}))
			address := map[string]string{"cluster": "192.0.2.10", "selected": service.Spec.ClusterIP, "namespace": "192.0.2.30"}[name]
			g.actAsPrinted()
			g.start()
			g.awaitReady()
			web := g.ingress("web", host, "/", "web", "web")
			web = g.putIngress(web, map[string]string{bodySize: "large", "nginx.ingress.kubernetes.io/proxy-buffering": "on"})
			g.await("https://"+host+"/", showing(pair, "web"))
			g.want("http://"+host+"/", from("web"))
			g.awaitEvents("Ingress", web, wrong, synced)
			g.awaitEvents("Pod", pod, "RELOAD Normal 1 ")
			g.awaitShown(address, "web")
			g.stop()
			g.awaitShown("", "web")
			if strings.Contains(g.log(), "permission") {
				t.Error("the log tells of permissions")
			}
		})
	}
}

// createPod makes a Pod that is there to be named, and has Headgate be it.
func (g *gate) createPod() *corev1.Pod {
	g.t.Helper()
	g.env = append(g.env, "POD_NAME=headgate", "POD_NAMESPACE="+g.class)
	return must[*corev1.Pod](g)(g.cluster.Client().CoreV1().Pods(g.class).Create(g.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "headgate", Image: "headgate.invalid/none"}}},
	}, metav1.CreateOptions{}))
}

// actAsPrinted has the controller be the ServiceAccount that "headgate rbac"
// prints for the same flags, with the roles that it prints.
func (g *gate) actAsPrinted() {
	g.t.Helper()
	path, err := controller.path()
	if err != nil {
		g.t.Fatal(err)
	}
	args := append([]string{"rbac", "--namespace", g.class}, g.args...)
	text, err := exec.CommandContext(g.t.Context(), path, args...).Output()
	if err != nil {
		g.t.Fatalf("printing the roles: %v", err)
	}
	ctx, client := g.t.Context(), g.cluster.Client()
	var granted []*authorizationv1.ResourceAttributes
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			g.t.Fatalf("%v in\n%s", err, document)
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
			g.t.Cleanup(func() {
				_ = client.RbacV1().ClusterRoles().Delete(context.Background(), o.Name, metav1.DeleteOptions{})
			})
			granted = append(granted, sample("", o.Rules))
			_, err = client.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			g.t.Cleanup(func() {
				_ = client.RbacV1().ClusterRoleBindings().Delete(context.Background(), o.Name, metav1.DeleteOptions{})
			})
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
		default:
			err = fmt.Errorf("a %T is printed", o)
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	for _, right := range granted {
		g.awaitAllowed("headgate", right)
	}
	g.actAs("headgate")
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
func (g *gate) awaitAllowed(account string, right *authorizationv1.ResourceAttributes) {
	g.t.Helper()
	user := "system:serviceaccount:" + g.class + ":" + account
	clustertest.Eventually(g.t, patience, func(ctx context.Context) error {
		review, err := g.cluster.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: right},
		}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = fmt.Errorf("%s may not yet %v", user, right)
		}
		return err
	})
}

// actAs has the controller be a ServiceAccount of the test's namespace.
func (g *gate) actAs(name string) {
	g.t.Helper()
	token := must[*authenticationv1.TokenRequest](g)(g.cluster.Client().CoreV1().ServiceAccounts(g.class).CreateToken(
		g.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	g.args = append(g.args, "--kubeconfig", g.writeKubeconfig(token.Status.Token))
}

// actAsServiceAccount has the controller be a ServiceAccount that may do what
// the rules say, and what is granted later.
func (g *gate) actAsServiceAccount(rules ...rbacv1.PolicyRule) (grant func(rbacv1.PolicyRule)) {
	g.t.Helper()
	ctx, client := g.t.Context(), g.cluster.Client()
	const name = "headgate"
	must[*corev1.ServiceAccount](g)(client.CoreV1().ServiceAccounts(g.class).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{}))
	roles, bindings := client.RbacV1().ClusterRoles(), client.RbacV1().ClusterRoleBindings()
	role := must[*rbacv1.ClusterRole](g)(roles.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: g.class}, Rules: rules,
	}, metav1.CreateOptions{}))
	must[*rbacv1.ClusterRoleBinding](g)(bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: g.class},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: g.class, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.class},
	}, metav1.CreateOptions{}))
	g.t.Cleanup(func() {
		unbound := bindings.Delete(context.Background(), g.class, metav1.DeleteOptions{})
		if err := errors.Join(unbound, roles.Delete(context.Background(), g.class, metav1.DeleteOptions{})); err != nil {
			g.t.Error(err)
		}
	})
	g.actAs(name)
	return func(rule rbacv1.PolicyRule) {
		g.t.Helper()
		role.Rules = append(role.Rules, rule)
		must[*rbacv1.ClusterRole](g)(roles.Update(ctx, role, metav1.UpdateOptions{}))
	}
}

// writeKubeconfig writes a kubeconfig whose user has a token.
func (g *gate) writeKubeconfig(token string) string {
	g.t.Helper()
	config := g.cluster.Config()
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, filepath.Join(g.dir, "kubeconfig")); err != nil {
		g.t.Fatal(err)
	}
	return filepath.Join(g.dir, "kubeconfig")
}
