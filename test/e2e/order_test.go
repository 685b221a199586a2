package e2e_test

import (
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Ingress may be older than the objects that it refers to: each has an effect
// as soon as it is created, and when it is deleted.
func TestAnyOrder(t *testing.T) {
	h := newHeadgate(t)
	h.start()
	h.awaitReady()
	host := h.host("web")
	url := "https://" + host + "/"
	h.createIngress(h.ingress("web", host, "/", "web", "web"))
	h.createClass(h.class+"-other", "headgate.invalid/other")
	foreign := h.ingress("foreign", h.host("foreign"), "/", "web", "")
	other := h.class + "-other"
	foreign.Spec.IngressClassName = &other
	h.createIngress(foreign)
	// The annotation names a class too. This Ingress comes last: once it is
	// served, the controller has seen the others.
	last := h.ingress("last", h.host("last"), "/", "missing", "")
	last.Spec.IngressClassName, last.Annotations = nil, map[string]string{"kubernetes.io/ingress.class": h.class}
	h.createIngress(last)
	h.await("http://"+h.host("last")+"/", status(http.StatusServiceUnavailable))
	h.want(url, status(http.StatusNotFound))

	h.createClass(h.class, controllerClass(h.class))
	h.await(url, status(http.StatusServiceUnavailable))
	h.createEndpoint("web", h.startEndpoint("web"))
	h.createService("web")
	h.await(url, from("web"))
	pair := h.createSecret("web", host)
	h.await(url, showing(pair, "web"))

	h.deleteClass(h.class)
	h.await(url, status(http.StatusNotFound))
	h.createClass(h.class, controllerClass(h.class))
	h.await(url, showing(pair, "web"))

	h.deleteSecret("web")
	h.await(url, withoutCertificate(pair.Certificate))
	h.deleteService("web")
	h.await(url, status(http.StatusServiceUnavailable))
	h.want("http://"+h.host("foreign")+"/", status(http.StatusNotFound))
	h.wantNoReload()
}

// withoutCertificate expects an answer behind any other certificate.
func withoutCertificate(certificate string) expectation {
	return func(a answer) error {
		if a.certificate == certificate {
			return errors.New("the certificate of a deleted Secret is shown")
		}
		return from("web")(a)
	}
}

// The Ingresses of a class that becomes another controller's are not served.
func TestClassOfAnotherController(t *testing.T) {
	h := startHeadgate(t)
	host := h.host("web")
	h.createBackend("web")
	h.createIngress(h.ingress("web", host, "/", "web", ""))
	h.await("http://"+host+"/", from("web"))
	// spec.controller is immutable: delete the class and create it again.
	h.deleteClass(h.class)
	h.createClass(h.class, "headgate.invalid/other")
	h.await("http://"+host+"/", status(http.StatusNotFound))
	named := h.ingress("web", host, "/", "web", "")
	mine := h.class + "-mine"
	named.Spec.IngressClassName = &mine
	h.updateIngress(named)
	h.createClass(mine, controllerClass(h.class))
	h.await("http://"+host+"/", from("web"))
}

func (h *headgate) deleteClass(name string) {
	h.t.Helper()
	if err := h.cluster.Client().NetworkingV1().IngressClasses().Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *headgate) deleteSecret(name string) {
	h.t.Helper()
	if err := h.cluster.Client().CoreV1().Secrets(h.class).Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *headgate) deleteService(name string) {
	h.t.Helper()
	if err := h.cluster.Client().CoreV1().Services(h.class).Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}
