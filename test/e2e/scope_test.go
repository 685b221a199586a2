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
func (h *headgate) label(namespace, key, value string) {
	h.t.Helper()
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	must[*corev1.Namespace](h)(h.cluster.Client().CoreV1().Namespaces().Patch(h.t.Context(), namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, text), metav1.PatchOptions{}))
}

// elsewhere creates an Ingress and its backend in another namespace.
func (h *headgate) elsewhere(namespace, name string) (url string) {
	h.t.Helper()
	home := h.class
	h.class = namespace
	h.createBackend("web")
	h.class = home
	ing := h.ingress(name, h.host(name), "/", "web", "")
	ing.Namespace = namespace
	h.createIngress(ing)
	return "http://" + h.host(name) + "/"
}

// Labels add and remove namespaces while Headgate runs.
func TestNamespaceSelector(t *testing.T) {
	const key = "headgate.invalid/scope"
	h := startHeadgate(t, "--watch-namespace-selector", key+" in (a,b)")
	h.createBackend("web")
	h.createIngress(h.ingress("web", h.host("web"), "/", "web", ""))
	other := h.cluster.Namespace(t)
	h.label(other, key, "a")
	url := h.elsewhere(other, "other")
	h.await(url, from("web"))
	h.want("http://"+h.host("web")+"/", status(http.StatusNotFound))

	h.label(h.class, key, "b")
	h.await("http://"+h.host("web")+"/", from("web"))
	h.label(other, key, "c")
	h.await(url, status(http.StatusNotFound))
	h.label(other, key, "")
	h.label(h.class, key, "")
	h.await("http://"+h.host("web")+"/", status(http.StatusNotFound))
	h.label(other, key, "b")
	h.await(url, from("web"))
	h.wantNoReload()
}

// One namespace alone is served, and it must exist.
func TestWatchNamespace(t *testing.T) {
	h := newHeadgate(t)
	h.createClass(h.class, controllerClass(h.class))
	h.args = append(h.args, "--watch-namespace", h.class)
	url := h.elsewhere(h.cluster.Namespace(t), "other")
	h.createBackend("web")
	h.createIngress(h.ingress("web", h.host("web"), "/", "web", ""))
	h.start()
	h.awaitReady()
	h.want("http://"+h.host("web")+"/", from("web"))
	h.want(url, status(http.StatusNotFound))
	h.stop()

	h.args = append(h.args, "--watch-namespace", h.class+"-missing")
	h.start()
	<-h.ended
	if h.code == 0 || !strings.Contains(h.log(), "the namespace "+h.class+"-missing to watch does not exist") {
		t.Errorf("a namespace that does not exist: %d", h.code)
	}
}

// An Ingress that is left out is not served, and its Event says why.
func TestLeftOut(t *testing.T) {
	h := startHeadgate(t, "--disable-catch-all")
	h.createBackend("web")
	catchAll := h.ingress("catch-all", h.host("catch-all"), "/", "web", "")
	catchAll.Spec.DefaultBackend = &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
	}
	catchAll = h.putIngress(catchAll, nil)
	spy := h.putIngress(h.ingress("spy", h.host("spy"), "/etc/passwd", "web", ""), nil)
	h.createIngress(h.ingress("web", h.host("web"), "/", "web", ""))
	h.await("http://"+h.host("web")+"/", from("web"))
	h.awaitEvents("Ingress", catchAll, "Excluded Warning 1 spec.defaultBackend: ")
	h.awaitEvents("Ingress", spy, `Excluded Warning 1 spec.rules[0].http.paths[0].path: "/etc/passwd" contains the name of a system file`)
	for _, name := range []string{"catch-all", "spy"} {
		h.want("http://"+h.host(name)+"/etc/passwd", status(http.StatusNotFound))
	}
	h.putIngress(h.ingress("spy", h.host("spy"), "/etc", "web", ""), nil)
	h.await("http://"+h.host("spy")+"/etc/passwd", from("web"))
}
