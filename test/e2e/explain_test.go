package e2e_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/finding"
)

// explain gives the same result for the cluster and for the controller that
// serves it. The controller also lists the units that its workers hold.
func TestExplain(t *testing.T) {
	h := startHeadgate(t)
	h.createBackend("web")
	host := h.host("web")
	pair := h.createSecret("web", host)
	h.createIngress(h.ingress("web", host, "/shop", "web", "web"))
	foreign, unknown := h.ingress("foreign", host, "/", "web", ""), "unknown"
	foreign.Spec.IngressClassName = &unknown
	h.createIngress(foreign)
	asked := "https://" + host + "/shop/cart"
	// A connection from before the Ingress is served has the default certificate,
	// also for later requests.
	h.await(asked, showing(pair, "web"))

	cluster := h.explain("--kubeconfig", h.cluster.Kubeconfig(), "--controller-class", controllerClass(h.class), "--ingress-class", h.class, asked)
	controller := h.explained(h.kubectl().run("exec", "-n", h.class, h.pod, "--", "/headgate", "explain", "-o", "json", asked))
	if cluster.DataPlane != nil || controller.DataPlane == nil {
		t.Fatalf("the data plane according to the cluster: %v, to the controller: %v", cluster.DataPlane, controller.DataPlane)
	}
	for _, u := range controller.DataPlane.Units {
		if !u.Current {
			t.Errorf("%+v is not current", u)
		}
	}
	if !slices.ContainsFunc(controller.DataPlane.Workers, func(w report.Worker) bool {
		return slices.ContainsFunc(w.Units, func(u report.Held) bool { return u.Kind == "host" && u.Name == host && u.Current })
	}) {
		t.Errorf("no worker holds the current host: %+v", controller.DataPlane.Workers)
	}
	controller.DataPlane = nil
	// Only a running controller finds that a certificate expires.
	controller.Findings = slices.DeleteFunc(controller.Findings, func(f finding.Finding) bool { return f.Code == finding.Expires })
	if diff := cmp.Diff(cluster, controller, cmp.AllowUnexported(report.Request{})); diff != "" {
		t.Errorf("the cluster (-) and the controller (+) differ: %s", diff)
	}
	if a, c := cluster.Answers[0], cluster.Certificate; a.Backend != h.class+"/web/80" || a.Endpoints != 1 || c.Default || c.Secret != "secret/"+h.class+"/web" {
		t.Errorf("answer %+v, certificate %+v", a, c)
	}
	if len(cluster.Unserved) != 1 || cluster.Unserved[0].Why != "its IngressClass unknown does not exist" {
		t.Errorf("not served are %+v", cluster.Unserved)
	}
}

// explain runs the command in the cluster's network.
func (h *headgate) explain(args ...string) report.Explanation {
	h.t.Helper()
	path, err := headgateBuild.program()
	if err != nil {
		h.t.Fatal(err)
	}
	var said bytes.Buffer
	command := h.cluster.Command(h.t.Context(), path, append([]string{"explain", "-o", "json"}, args...)...)
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		h.t.Fatalf("explain %v: %v: %s", args, err, said.String())
	}
	return h.explained(string(output))
}

func (h *headgate) explained(output string) report.Explanation {
	h.t.Helper()
	var e report.Explanation
	if err := json.Unmarshal([]byte(output), &e); err != nil {
		h.t.Fatal(err)
	}
	return e
}
