package nginxconf_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

const annotationPrefix = "nginx.ingress.kubernetes.io"

// profileLine is every line that a tenant may add: those of a profile, as the
// features declare its directives, and the phase of TLS policies.
func profileLine(t testing.TB) *regexp.Regexp {
	t.Helper()
	forms := []string{
		``, `\}`, `location @p_[0-9a-f]{12}(?:[0-9a-f]{28})?(?:_[a-z]+)* \{`, `log_by_lua_block \{ require\("headgate\.request"\)\.release\(\) \}`,
		`ssl_client_hello_by_lua_block \{ require\("headgate\.client_hello"\)\.run\(\) \}`,
		`auth_request _check_(https?|verified);`, `error_page 401 = @refused;`,
		`(?:access|header_filter)_by_lua_block \{ require\("headgate\.(?:access|header_filter)"\)\.run\((?:true|false)?\) \}`, `proxy_pass http://hg_http;`,
		`(?:proxy|grpc)_pass (?:http|grpc)s://hg_(?:http|grpc)s_[0-9a-f]{40};`, `proxy_pass \$scheme://hg_\$\{scheme\}_[0-9a-f]{40};`,
		`upstream hg_(?:https?|grpcs)_[0-9a-f]{40} \{`, `keepalive \d+;`,
	}
	// What another protocol needs is the same for all.
	client := by(model.HTTP, true)
	client.AsClient = true
	ways := []model.Profile{by(model.GRPC, false), by(model.GRPC, true), by(model.HTTP, true), client}
	for line := range strings.SplitSeq(render(t, environment(t), builtGlobals(t), ways, dictionaries), "\n") {
		forms = append(forms, regexp.QuoteMeta(strings.TrimSpace(line)))
	}
	for _, d := range feature.Directives(all.Features()) {
		forms = append(forms, directiveLine(t, d))
	}
	return regexp.MustCompile(`^\s*(?:` + strings.Join(forms, "|") + `)$`)
}

// word is one of a declaration: a name, a media type, or variables that Lua sets. That of a
// value which leaves a directive out is empty.
var word = regexp.MustCompile(`^(?:!?[A-Za-z0-9_./+=*~-]+|"msie6"|(?:[a-z_]+ )?(?:\$hg_[a-z0-9_]+ ?)+|[a-z_]+ ~|)$`)

// directiveLine is a directive of a profile with any value that it can have.
func directiveLine(t testing.TB, d directive.Directive) string {
	t.Helper()
	var words []string
	for _, text := range append([]string{cmp.Or(d.As, d.Name)}, d.Words...) {
		if !word.MatchString(text) {
			t.Fatalf("the directive %s has the word %q", d.Name, text)
		}
		words = append(words, regexp.QuoteMeta(text))
	}
	if d.Kind == directive.Statuses || d.Kind == directive.OwnStatuses {
		return `(?:(?:proxy|grpc)_intercept_errors on|error_page(?: [3-5]\d\d)+ @error_page);`
	}
	name, one := words[0], strings.Join(words[1:], "|")
	if !d.Plain {
		name = "(?:proxy|grpc)_" + name
	}
	const size = `\d+[kmg]?`
	form := map[directive.Kind]string{
		directive.OnOff: `(?:on|off)`, directive.Size: size, directive.Memory: size, directive.Count: `\d+`, directive.Seconds: `\d+s`,
		directive.Set: `(?:off|(?:` + one + `)(?: (?:` + one + `))*)`, directive.Choice: `(?:` + one + `)`,
		directive.Ordered: `(?:` + one + `)(?::(?:` + one + `))*`, directive.File: `files/[0-9a-f]{64}`, directive.Variable: `\$` + d.Variable,
		directive.Listed:       `(?:` + one + `)(?: (?:` + one + `))*`,
		directive.RequestLimit: `zone=\w+(?: burst=\d+)?(?: nodelay| delay=\d+)?`, directive.ConnectionLimit: `\w+ \d+`,
	}[d.Kind]
	if form == "" {
		t.Fatalf("the directive %s is of a kind that is not known here", d.Name)
	}
	if d.Times != "" {
		form += " " + size
	}
	return name + " " + form + ";"
}

// settingsOfRoutes are the names of all annotations.
func settingsOfRoutes() []string {
	var names []string
	for _, f := range all.Features() {
		for _, s := range f.Settings {
			if name := s.Spec().Annotation; name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// FuzzTenant: for any text of a tenant, nginx.conf only gets the lines of
// profileLine, and those hold only numbers and words of declarations. Every
// annotation gets one of three values, so that good ones and bad ones meet.
func FuzzTenant(f *testing.F) {
	for _, seed := range [][5]string{
		{"a.test", "/", "3m", "on", "1"},
		{"*.a.test", "/x y", "1m; include /etc/passwd", "off", "500g"},
		{"a\r\n;}", "/${uri}{}", "8k;\n}\nserver {", "true", "4"},
		{"", "/'\"\\", "\x00", "\u2028", "00000000000000000000001k"},
		{"_", "/..;/", "0", "256", "16m"},
		{"b.test", "/", "error http_503", "1.0", "off; x"},
		{"a.test", "/", "GRPCS", "auto_http", "HTTPS"},
		{"a.test", "/", "GRPC", "https; }", "a.test"},
		{"a.test", "/", "HIGH:!aNULL", "HIGH; ssl_protocols SSLv3", "HIGH\n}"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], uint16(0xaaaa))
	}
	env := environment(f)
	names, allowed := settingsOfRoutes(), profileLine(f)
	base := strings.Split(render(f, env, builtGlobals(f), nil, dictionaries), "\n")
	f.Fuzz(func(t *testing.T, hostName, path, one, two, three string, choice uint16) {
		annotations := map[string]string{}
		for i, name := range names {
			annotations[annotationPrefix+"/"+name] = []string{one, two, three}[int(choice>>(i%16)+uint16(i))%3]
		}
		d := desiredOf(t, hostName, path, annotations)
		next, _, err := d.Next(env, plan.Static{Dictionaries: dictionaries}, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(next.Files[nginxconf.File]), "\n")
		rest := base
		for _, line := range lines {
			if len(rest) > 0 && line == rest[0] {
				rest = rest[1:]
				continue
			}
			if !allowed.MatchString(line) {
				t.Fatalf("host %q, path %q, %q wrote the line %q", hostName, path, annotations, line)
			}
		}
		if len(rest) > 0 {
			t.Fatalf("host %q, path %q, %q took away the line %q", hostName, path, annotations, rest[0])
		}
		if d.Count(unit.Host) == 0 {
			t.Fatal("nothing was built")
		}
	})
}

// builtGlobals are those of an empty ConfigMap.
func builtGlobals(t testing.TB) model.Globals {
	t.Helper()
	b := build.New(all.Features(), annotationPrefix)
	g, findings := b.Globals(store.New(store.Settings{}, b.Refer))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return g
}

// desiredOf is what one Ingress asks for.
func desiredOf(t *testing.T, hostName, path string, annotations map[string]string) *plan.Desired {
	t.Helper()
	b := build.New(all.Features(), annotationPrefix)
	s := store.New(store.Settings{IngressClass: "nginx", WatchWithoutClass: true, Classless: true}, b.Refer)
	kind := networkingv1.PathTypePrefix
	s.Apply(&networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: annotations},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: hostName, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}},
				},
			}}},
		}}}},
	}, false)
	d := plan.NewDesired(nil)
	d.Set(unit.Of(builtGlobals(t)))
	for _, key := range s.All() {
		built, _ := b.Unit(key, s)
		if h, ok := built.Model.(model.Host); ok {
			checkPolicies(t, h)
		}
		d.Set(built)
	}
	return d
}

// checkPolicies expects only features that there are.
func checkPolicies(t *testing.T, h model.Host) {
	t.Helper()
	for _, r := range h.Routes {
		for _, p := range r.Policies {
			if !slices.ContainsFunc(all.Features(), func(f feature.Feature) bool { return f.Name == p.Feature }) {
				t.Fatalf("a policy of %q", p.Feature)
			}
		}
	}
}
