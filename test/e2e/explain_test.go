package e2e_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/finding"
)

// A cluster explains as the controller does that serves it, which tells what
// its workers hold besides.
func TestExplain(t *testing.T) {
	g := startGate(t)
	g.createBackend("web")
	host := g.host("web")
	pair := g.createSecret("web", host)
	g.createIngress(g.ingress("web", host, "/shop", "web", "web"))
	foreign, nobodys := g.ingress("foreign", host, "/", "web", ""), "nobodys"
	foreign.Spec.IngressClassName = &nobodys
	g.createIngress(foreign)
	asked := "https://" + host + "/shop/cart"
	// A connection that begins before the Ingress is served and asks after it
	// shows the default certificate.
	g.await(asked, showing(pair, "web"))

	cluster := g.explain("--kubeconfig", g.cluster.Kubeconfig(), "--controller-class", controllerClass(g.class), "--ingress-class", g.class, asked)
	controller := g.explain("--run-dir", filepath.Join(g.dir, "run"), asked)
	if cluster.DataPlane != nil || controller.DataPlane == nil {
		t.Fatalf("the cluster tells of the data plane: %v, the controller: %v", cluster.DataPlane, controller.DataPlane)
	}
	for _, u := range controller.DataPlane.Units {
		if !u.Current {
			t.Errorf("%+v is not what is explained", u)
		}
	}
	if !slices.ContainsFunc(controller.DataPlane.Workers, func(w explain.Worker) bool {
		return slices.ContainsFunc(w.Units, func(u explain.Held) bool { return u.Kind == "host" && u.Name == host && u.Current })
	}) {
		t.Errorf("no worker holds what it answered by: %+v", controller.DataPlane.Workers)
	}
	controller.DataPlane = nil
	// That a certificate comes to its end is found out by who runs on.
	controller.Findings = slices.DeleteFunc(controller.Findings, func(f finding.Finding) bool { return f.Code == finding.Expires })
	if diff := cmp.Diff(cluster, controller, cmp.AllowUnexported(explain.Request{})); diff != "" {
		t.Errorf("the cluster (-) and the controller (+) differ: %s", diff)
	}
	if a, c := cluster.Answers[0], cluster.Certificate; a.Backend != g.class+"/web/80" || a.Endpoints != 1 || c.Default || c.Secret != "secret/"+g.class+"/web" {
		t.Errorf("answer %+v, certificate %+v", a, c)
	}
	if len(cluster.Unserved) != 1 || cluster.Unserved[0].Why != "its IngressClass nobodys does not exist" {
		t.Errorf("not served are %+v", cluster.Unserved)
	}
}

// explain runs the command in the cluster's network.
func (g *gate) explain(args ...string) explain.Explanation {
	g.t.Helper()
	path, err := controller.path()
	if err != nil {
		g.t.Fatal(err)
	}
	var said bytes.Buffer
	command := g.cluster.Command(g.t.Context(), path, append([]string{"explain", "-o", "json"}, args...)...)
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		g.t.Fatalf("explain %v: %v: %s", args, err, said.String())
	}
	var e explain.Explanation
	if err := json.Unmarshal(output, &e); err != nil {
		g.t.Fatal(err)
	}
	return e
}
