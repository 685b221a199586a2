package rbac

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/cluster/permission"
	"github.com/headgate/headgate/internal/command/option"
)

var update = flag.Bool("update", false, "update deploy/rbac")

// printRoles runs the command "rbac".
func printRoles(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var text bytes.Buffer
	command := Command()
	command.SetOut(&text)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return text.String(), err
}

// TestRoles: the roles in deploy are those that the code declares.
func TestRoles(t *testing.T) {
	for file, args := range map[string]string{
		"cluster.yaml":   "--configmap headgate/headgate",
		"namespace.yaml": "--configmap headgate/headgate --watch-namespace shop",
		"control.yaml":   "control --configmap headgate/headgate",
	} {
		text, err := printRoles(t, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		text = "# Made by headgate rbac " + args + "\n" + text
		path := "../../../deploy/rbac/" + file
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if was, err := os.ReadFile(path); err != nil || string(was) != text {
			t.Errorf("%s is not what the code asks for (go test ./internal/command/rbac -run TestRoles -update writes it): %v", path, err)
		}
	}
	for _, args := range []string{
		"--manifests-dir x", "--configmap x", "--watch-namespace a --watch-namespace-selector b=c",
		"control --edge-account x", "edge", "edge --control-address a:1", "--edge-account a/b",
	} {
		if _, err := printRoles(t, strings.Fields(args)...); err == nil {
			t.Errorf("%q has roles", args)
		}
	}
}

// TestRolesOfWebhook: what the webhook's certificate needs is asked for with the flag only,
// and by name.
func TestRolesOfWebhook(t *testing.T) {
	const name = "headgate-admission"
	for args, want := range map[string]bool{
		"": false, "--validating-webhook :8443 --validating-webhook-certificate c --validating-webhook-key k": false,
		"--validating-webhook :8443 --webhook-self-signed --disable-leader-election": true,
	} {
		text, err := printRoles(t, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range []string{
			"resources: [\"validatingwebhookconfigurations\"]\n  resourceNames: [\"" + name + "\"]\n  verbs: [get, update]",
			"resources: [\"secrets\"]\n  resourceNames: [\"" + name + "\"]\n  verbs: [get, update]",
			"resources: [\"secrets\"]\n  verbs: [create]",
		} {
			if got := strings.Contains(text, rule); got != want {
				t.Errorf("%q: %v in\n%s\nwant %v", args, rule, text, want)
			}
		}
	}
	text, err := printRoles(t, "--validating-webhook=:8443", "--webhook-self-signed", "--webhook-secret=shop/pair", "--webhook-configuration=hook")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`namespace: "shop"`, `["pair"]`, `["hook"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// TestRolesOfControl: what edges need of a control is asked for by its flags.
func TestRolesOfControl(t *testing.T) {
	const (
		secret     = "resources: [\"secrets\"]\n  resourceNames: [\"edges\"]\n  verbs: [get, update]"
		configMap  = "resources: [\"configmaps\"]\n  resourceNames: [\"edges\"]\n  verbs: [get, update]"
		reviews    = "resources: [\"tokenreviews\"]\n  verbs: [create]"
		namespaces = "resources: [\"namespaces\"]\n  verbs: [list, watch]"
		nodes      = "resources: [\"nodes\"]\n  verbs: [get]"
		zones      = "resources: [\"nodes\"]\n  verbs: [get, list, watch]"
		ofShop     = "namespace: \"shop\""
	)
	all := []string{secret, configMap, reviews, namespaces, nodes, zones, ofShop}
	for args, want := range map[string][]string{
		"--edge-authority=headgate/edges":                                 {secret, configMap, reviews, nodes},
		"--edge-authority=shop/edges":                                     {secret, configMap, reviews, nodes, ofShop},
		"--edge-authority=headgate/edges --enable-topology-aware-routing": {secret, configMap, reviews, nodes},
		"--edge-authority=headgate/edges --edge-account=shop/edge":        {secret, configMap, reviews, nodes, ofShop},
		"--edge-authority=headgate/edges --edge-account=shop/edge --publish-service=headgate/web --update-status-on-shutdown=false": {secret, configMap, reviews},
		"--edge-authority=headgate/edges --edge-account=headgate/edge=group":                                                        {secret, configMap, reviews, nodes, namespaces},
		"--edge-certificate=c --edge-key=k --edge-ca=a":                                                                             {nodes},
		"--edge-certificate=c --edge-key=k --edge-ca=a --publish-service=headgate/web --edge-account=headgate/edge=group":           {namespaces},
	} {
		text, err := printRoles(t, append([]string{"control"}, strings.Fields(args)...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range all {
			if got := strings.Contains(text, rule); got != slices.Contains(want, rule) {
				t.Errorf("%q: %q is asked for: %v, in\n%s", args, rule, got, text)
			}
		}
	}
}

// ofIngressNGINX are the rules of ingress-nginx's ClusterRole, and of its Role in
// its own namespace.
const ofIngressNGINX = `
cluster configmaps list watch
cluster nodes get list watch
cluster pods list watch
cluster secrets list watch
cluster namespaces list watch
cluster services get list watch
cluster ingresses.networking.k8s.io get list watch
cluster events create patch
cluster ingresses/status.networking.k8s.io update
cluster ingressclasses.networking.k8s.io get list watch
cluster endpointslices.discovery.k8s.io list watch get
own namespaces get
own configmaps get list watch
own pods get list watch
own secrets get list watch
own services get list watch
own leases.coordination.k8s.io get update create
own events create patch
`

// TestRolesOfIngressNGINX: Headgate needs no permission that the roles of
// ingress-nginx do not grant, so that only the image has to change.
func TestRolesOfIngressNGINX(t *testing.T) {
	granted := map[string]bool{}
	for line := range strings.Lines(ofIngressNGINX) {
		fields := strings.Fields(line)
		for _, verb := range fields[min(2, len(fields)):] {
			granted[fields[0]+" "+fields[1]+" "+verb] = true
		}
	}
	for _, flags := range []string{
		"--configmap=headgate/options",
		"--configmap=headgate/options --watch-namespace-selector=a=b --enable-topology-aware-routing",
	} {
		var o option.Options
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.Add(f)
		if err := f.Parse(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		list, err := permissions(o, "headgate")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			for verb := range strings.FieldsSeq(p.Verbs) {
				if !isGranted(granted, p, verb) {
					t.Errorf("%s %s in namespace %q is not granted", verb, p, p.Namespace)
				}
			}
		}
	}
}

func isGranted(granted map[string]bool, p permission.Permission, verb string) bool {
	what := p.String() + " " + verb
	return granted["cluster "+what] || p.Namespace == "headgate" && granted["own "+what]
}
