package spec

import (
	"math/rand/v2"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

// ordinary are texts that no Ingress may lose to deep inspection: hosts, names of
// Secrets, paths, and expressions as they are in use.
var ordinary = []string{
	"", "/", "/foo", "/foo/", "/Foo/(.*)", "/(.*)", "/foo(/|$)(.*)", "/foo/(?<rest>.*)", "/a b/[0-9]+", "/x(y)", "/foo/[a-m]",
	"/(.)(.)(.)(.)(.)(.)(.)(.)(.)", "/?x=<script>alert(1)</script>", "/^[a-z]+$", `/v\d+/users/\w{3,}(/|$)`, "/(?i)images/.*\\.(png|jpe?g)$",
	"/api/v1/namespaces/(.+)/secrets", "/secrets", "/run/secrets", "/var/run/docker", "/var/log", "/etc", "/etc/", "/etc/groups",
	"/etc/nginxes", "/etc/passwords", "/docs/etc/hosts", "/root", "/root/", "/root;v=1", "/alias;v=1/x", "/aliases/(.*)",
	"/grass root/x;", "/alias of mine", "/matrix;a=1;b=2/alias", "/beet-root;x y;", "/lua", "/by_lua/", "/standby_luas", "/scripts/run.lua",
	"/shadow", "/group/passwd", "/nginx", "/nginx_status", "/ingress-controller",
	"root.example.com", "alias.example.com", "*.nginx.example.com", "etc.example.com", "xn--bcher-kva.example", "secrets-tls", "root",
}

// refused are texts as attackers write them, by what they hold.
var refused = map[string]string{
	"/{alias /etc/x;}":                      "alias or root",
	"/x;root /;":                            "alias or root",
	"alias /tmp/;":                          "alias or root",
	"/x\n\talias\t/srv;#":                   "alias or root",
	"/x {\nroot \"/\" ;":                    "alias or root",
	"/etc/passwd":                           "below /etc",
	"/x/etc/shadow":                         "below /etc",
	"/etc/passwd-":                          "below /etc",
	"/etc//nginx/nginx.conf":                "below /etc",
	"/etc/./././group":                      "below /etc",
	"/etc/ingress-controller/ssl/x.pem":     "below /etc",
	"/var/run/secrets":                      "credentials",
	"/var//run/./secrets/x":                 "credentials",
	"/run/secrets/kubernetes.io/token":      "credentials",
	"/x{content_by_lua_block{os.execute()}": "Lua",
	"a.example;access_by_lua '':":           "Lua",
	"init_worker_by_lua_file":               "Lua",
}

func TestSuspicion(t *testing.T) {
	for _, text := range ordinary {
		if what := suspicion(text); what != "" {
			t.Errorf("%q holds %s", text, what)
		}
	}
	for text, want := range refused {
		if what := suspicion(text); !strings.Contains(what, want) {
			t.Errorf("%q holds %q, want %q", text, what, want)
		}
	}
}

// TestInspectedFields puts a text into each field that is inspected.
func TestInspectedFields(t *testing.T) {
	const bad = "/etc/passwd"
	for field, put := range map[string]func(*networkingv1.Ingress){
		"spec.rules[1].host":               func(ing *networkingv1.Ingress) { ing.Spec.Rules[1].Host = bad },
		"spec.rules[0].http.paths[0].path": func(ing *networkingv1.Ingress) { ing.Spec.Rules[0].HTTP.Paths[0].Path = bad },
		"spec.tls[0].secretName":           func(ing *networkingv1.Ingress) { ing.Spec.TLS[0].SecretName = bad },
		"spec.tls[0].hosts[0]":             func(ing *networkingv1.Ingress) { ing.Spec.TLS[0].Hosts[0] = bad },
	} {
		ing := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{
			Rules: []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/"}}},
			}}, {}},
			TLS: []networkingv1.IngressTLS{{Hosts: []string{"a.example"}}},
		}}
		inspecting := Scope{DeepInspect: true}
		if inspecting.LeavesOut(ing) {
			t.Fatalf("%v is left out", ing)
		}
		put(ing)
		if !inspecting.LeavesOut(ing) || (Scope{}).LeavesOut(ing) {
			t.Errorf("%s: left out is %v, without deep inspection %v", field, inspecting.LeavesOut(ing), Scope{}.LeavesOut(ing))
		}
		if fs := inspecting.check(ing); len(fs) != 1 || fs[0].Field != field {
			t.Errorf("%s: %v", field, fs)
		}
	}
}

// FuzzSuspicion hides what is refused in other text, and looks that text of
// whole words alone is never refused.
func FuzzSuspicion(f *testing.F) {
	for _, text := range ordinary {
		f.Add(text, uint64(1))
	}
	for text := range refused {
		f.Add(text, uint64(2))
	}
	hidden := []string{"\nalias /x;", "/etc/passwd ", "/etc/.//nginx/", "/var/run/secrets/", " log_by_lua_block "}
	f.Fuzz(func(t *testing.T, text string, choice uint64) {
		random := rand.New(rand.NewPCG(choice, 0))
		at := random.IntN(len(text) + 1)
		what := hidden[random.IntN(len(hidden))]
		if suspicion(text[:at]+what+text[at:]) == "" {
			t.Errorf("%q in %q is not seen", what, text[:at]+what+text[at:])
		}
		plain := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
				return r
			}
			return -1
		}, text)
		for _, ordinary := range []string{"/" + plain, plain + ".example.com", "/a/" + plain + "(/|$)(.*)"} {
			if what := suspicion(ordinary); what != "" {
				t.Errorf("%q holds %s", ordinary, what)
			}
		}
	})
}
