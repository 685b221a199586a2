package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// label gives a namespace a label; an empty value takes it away.
func (g *gate) label(namespace, key, value string) {
	g.t.Helper()
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	must[*corev1.Namespace](g)(g.cluster.Client().CoreV1().Namespaces().Patch(g.t.Context(), namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, text), metav1.PatchOptions{}))
}

// elsewhere creates an Ingress and its backend in another namespace.
func (g *gate) elsewhere(namespace, name string) (url string) {
	g.t.Helper()
	home := g.class
	g.class = namespace
	g.createBackend("web")
	g.class = home
	ing := g.ingress(name, g.host(name), "/", "web", "")
	ing.Namespace = namespace
	g.createIngress(ing)
	return "http://" + g.host(name) + "/"
}

// Namespaces come and go by their labels while Headgate runs.
func TestNamespaceSelector(t *testing.T) {
	const key = "headgate.invalid/scope"
	g := startGate(t, "--watch-namespace-selector", key+" in (a,b)")
	g.createBackend("web")
	g.createIngress(g.ingress("web", g.host("web"), "/", "web", ""))
	other := g.cluster.Namespace(t)
	g.label(other, key, "a")
	url := g.elsewhere(other, "other")
	g.await(url, from("web"))
	g.want("http://"+g.host("web")+"/", status(http.StatusNotFound))

	g.label(g.class, key, "b")
	g.await("http://"+g.host("web")+"/", from("web"))
	g.label(other, key, "c")
	g.await(url, status(http.StatusNotFound))
	g.label(other, key, "")
	g.label(g.class, key, "")
	g.await("http://"+g.host("web")+"/", status(http.StatusNotFound))
	g.label(other, key, "b")
	g.await(url, from("web"))
	g.wantNoReload()
}

// Of all namespaces one is served, and only one that exists.
func TestWatchNamespace(t *testing.T) {
	g := newGate(t)
	g.createClass(g.class, controllerClass(g.class))
	g.args = append(g.args, "--watch-namespace", g.class)
	url := g.elsewhere(g.cluster.Namespace(t), "other")
	g.createBackend("web")
	g.createIngress(g.ingress("web", g.host("web"), "/", "web", ""))
	g.start()
	g.awaitReady()
	g.want("http://"+g.host("web")+"/", from("web"))
	g.want(url, status(http.StatusNotFound))
	g.stop()

	g.args = append(g.args, "--watch-namespace", g.class+"-missing")
	g.start()
	<-g.ended
	if g.cmd.ProcessState.Success() || !strings.Contains(g.log(), "the namespace "+g.class+"-missing to watch does not exist") {
		t.Errorf("a namespace that does not exist: %v", g.cmd.ProcessState)
	}
	g.cmd = nil
}

// What is left out as a whole is not served, and its Event says why.
func TestLeftOut(t *testing.T) {
	g := startGate(t, "--disable-catch-all")
	g.createBackend("web")
	catchAll := g.ingress("catch-all", g.host("catch-all"), "/", "web", "")
	catchAll.Spec.DefaultBackend = &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
	}
	catchAll = g.putIngress(catchAll, nil)
	spy := g.putIngress(g.ingress("spy", g.host("spy"), "/etc/passwd", "web", ""), nil)
	g.createIngress(g.ingress("web", g.host("web"), "/", "web", ""))
	g.await("http://"+g.host("web")+"/", from("web"))
	g.awaitEvents("Ingress", catchAll, "Refused Warning 1 spec.defaultBackend: ")
	g.awaitEvents("Ingress", spy, `Refused Warning 1 spec.rules[0].http.paths[0].path: "/etc/passwd" holds the name of a system file`)
	for _, name := range []string{"catch-all", "spy"} {
		g.want("http://"+g.host(name)+"/etc/passwd", status(http.StatusNotFound))
	}
	g.putIngress(g.ingress("spy", g.host("spy"), "/etc", "web", ""), nil)
	g.await("http://"+g.host("spy")+"/etc/passwd", from("web"))
}
