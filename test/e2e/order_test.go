package e2e_test

import (
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Ingress may be there before all that it refers to: each thing counts as
// soon as it comes, and when it goes.
func TestAnyOrder(t *testing.T) {
	g := newGate(t)
	g.start()
	g.awaitReady()
	host := g.host("web")
	url := "https://" + host + "/"
	g.createIngress(g.ingress("web", host, "/", "web", "web"))
	g.createClass(g.class+"-other", "headgate.invalid/other")
	foreign := g.ingress("foreign", g.host("foreign"), "/", "web", "")
	other := g.class + "-other"
	foreign.Spec.IngressClassName = &other
	g.createIngress(foreign)
	// The annotation names a class too. This Ingress comes last: when it is
	// served, the others have been seen.
	last := g.ingress("last", g.host("last"), "/", "missing", "")
	last.Spec.IngressClassName, last.Annotations = nil, map[string]string{"kubernetes.io/ingress.class": g.class}
	g.createIngress(last)
	g.await("http://"+g.host("last")+"/", status(http.StatusServiceUnavailable))
	g.want(url, status(http.StatusNotFound))

	g.createClass(g.class, controllerClass(g.class))
	g.await(url, status(http.StatusServiceUnavailable))
	g.createEndpoint("web", g.startEndpoint("web"))
	g.createService("web")
	g.await(url, from("web"))
	pair := g.createSecret("web", host)
	g.await(url, showing(pair, "web"))

	g.deleteClass(g.class)
	g.await(url, status(http.StatusNotFound))
	g.createClass(g.class, controllerClass(g.class))
	g.await(url, showing(pair, "web"))

	g.deleteSecret("web")
	g.await(url, withoutCertificate(pair.Certificate))
	g.deleteService("web")
	g.await(url, status(http.StatusServiceUnavailable))
	g.want("http://"+g.host("foreign")+"/", status(http.StatusNotFound))
	g.wantNoReload()
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

// A class that comes to be another controller's takes its Ingresses with it.
func TestClassOfAnotherController(t *testing.T) {
	g := startGate(t)
	host := g.host("web")
	g.createBackend("web")
	g.createIngress(g.ingress("web", host, "/", "web", ""))
	g.await("http://"+host+"/", from("web"))
	// spec.controller never changes: the class is made anew.
	g.deleteClass(g.class)
	g.createClass(g.class, "headgate.invalid/other")
	g.await("http://"+host+"/", status(http.StatusNotFound))
	named := g.ingress("web", host, "/", "web", "")
	mine := g.class + "-mine"
	named.Spec.IngressClassName = &mine
	g.updateIngress(named)
	g.createClass(mine, controllerClass(g.class))
	g.await("http://"+host+"/", from("web"))
}

func (g *gate) deleteClass(name string) {
	g.t.Helper()
	if err := g.cluster.Client().NetworkingV1().IngressClasses().Delete(g.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gate) deleteSecret(name string) {
	g.t.Helper()
	if err := g.cluster.Client().CoreV1().Secrets(g.class).Delete(g.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gate) deleteService(name string) {
	g.t.Helper()
	if err := g.cluster.Client().CoreV1().Services(g.class).Delete(g.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		g.t.Fatal(err)
	}
}
