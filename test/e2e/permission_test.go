package e2e_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
	token := must[*authenticationv1.TokenRequest](g)(client.CoreV1().ServiceAccounts(g.class).CreateToken(
		ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	g.args = append(g.args, "--kubeconfig", g.writeKubeconfig(token.Status.Token))
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
