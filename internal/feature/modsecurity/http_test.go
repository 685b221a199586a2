package modsecurity_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// injection is the attack of the core rules' own tests for the rule 942100.
const injection = "/?id=1%27%20OR%20%271%27=%271%20UNION%20SELECT%20password%20FROM%20users--"

// browser has the headers without which the core rules count a request as suspicious.
func browser() http.Header {
	return http.Header{"User-Agent": {"Mozilla/5.0"}, "Accept": {"*/*"}}
}

func start(t *testing.T, o headgatetest.Options, keys ...string) *headgatetest.Instance {
	t.Helper()
	o.Timing = headgatetest.Hasty()
	o.Manifests += headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.Config(append(keys, "allow-snippet-annotations: true", "annotations-risk-level: Critical")...)
	return headgatetest.Start(t, o)
}

func ingress(name string, annotations ...string) string {
	return headgatetest.Ingress(name, name+".test", "/", "a", append(annotations, "enable-modsecurity: true")...)
}

func rules(lines ...string) string {
	return "modsecurity-snippet: " + strings.Join(lines, "\n")
}

func TestCoreRules(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Options{Manifests: ingress("blocks", "enable-owasp-core-rules: true", rules("SecRuleEngine On")) +
		ingress("detects", "enable-owasp-core-rules: true", rules("SecRuleEngine DetectionOnly", "SecAuditEngine RelevantOnly", "SecAuditLogParts AHZ", "SecAuditLog /dev/stderr")) +
		ingress("recommended", "enable-owasp-core-rules: true") +
		ingress("includes", rules("SecRuleEngine On", "Include /etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf")) +
		ingress("without", rules("SecRuleEngine On")) +
		ingress("removes", "enable-owasp-core-rules: true", rules("SecRuleEngine On", "SecRuleRemoveByTag attack-sqli")) +
		ingress("bodiless", "enable-owasp-core-rules: true", rules("SecRuleEngine On", "SecRequestBodyAccess Off")) +
		ingress("rewritten", "enable-owasp-core-rules: true", rules("SecRuleEngine On"), "rewrite-target: /elsewhere") +
		headgatetest.Ingress("off", "off.test", "/", "a")})
	for host, want := range map[string]int{
		"blocks": 403, "detects": 200, "recommended": 200, "includes": 403, "without": 200, "removes": 200, "bodiless": 200, "rewritten": 403, "off": 200,
	} {
		for _, http2 := range []bool{false, true} {
			r := headgatetest.Request{Host: host + ".test", Path: injection, Header: browser()}
			if http2 {
				r.Scheme, r.HTTP2 = "https", true
			}
			if got := g.Do(r).Status; got != want {
				t.Errorf("an attack on %s, HTTP/2 %v: status %d, want %d", host, http2, got, want)
			}
			r.Path = "/?id=1"
			if got := g.Do(r).Status; got != 200 {
				t.Errorf("no attack on %s, HTTP/2 %v: status %d, want 200", host, http2, got)
			}
		}
	}
	headgatetest.Eventually(t, "ModSecurity reports the attack", func() bool { return strings.Contains(g.Log.String(), "942100") })

	form := url.Values{"id": {"1' OR '1'='1 UNION SELECT password FROM users--"}}.Encode()
	for host, want := range map[string]int{"blocks": 403, "bodiless": 200, "recommended": 200} {
		header := browser()
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		if got := g.Do(headgatetest.Request{Method: "POST", Host: host + ".test", Path: "/", Header: header, Body: strings.NewReader(form)}).Status; got != want {
			t.Errorf("an attack in a body on %s: status %d, want %d", host, got, want)
		}
	}
}

// TestRules: phases, statuses, responses, IDs, and that rules are a location's own.
func TestRules(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	g := start(t, headgatetest.Options{Manifests: headgatetest.Service("counts") + headgatetest.Endpoints("counts", headgatetest.StartBackend(t,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			w.Header().Set("X-Leak", r.Header.Get("Leak"))
			fmt.Fprint(w, "body of the backend")
		}))) +
		strings.ReplaceAll(ingress("status", rules("SecRuleEngine On", `SecRule ARGS:x "@streq bad" "id:1,phase:2,deny,status:418"`)), "{name: a,", "{name: counts,") +
		ingress("redirect", rules("SecRuleEngine On", `SecRule ARGS:x "@streq bad" "id:1,phase:1,redirect:https://else.test/,status:302"`)) +
		strings.ReplaceAll(ingress("response", rules("SecRuleEngine On", `SecRule RESPONSE_HEADERS:X-Leak "@streq key" "id:1,phase:3,deny"`)), "{name: a,", "{name: counts,") +
		ingress("id", rules("SecRuleEngine On", "SecAuditEngine On", "SecAuditLogFormat JSON", "SecAuditLogParts AHZ", "SecAuditLog /dev/stderr"),
			"modsecurity-transaction-id: x-$http_number") +
		ingress("rewritten", rules("SecRuleEngine On", `SecRule REQUEST_URI "@streq /original" "id:1,phase:1,deny,status:406"`), "rewrite-target: /new") +
		ingress("private", rules("SecRuleEngine On", `SecRule ARGS:x "@streq bad" "id:1,phase:2,deny,status:418"`),
			"auth-type: basic", "auth-secret: users") +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n"})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		ask := func(host, path string, header http.Header) headgatetest.Response {
			return g.Do(headgatetest.Request{Scheme: scheme, HTTP2: http2, Host: host, Path: path, Header: header})
		}
		before := asked.Load()
		ask("status.test", "/?x=bad", nil).WantStatus(t, 418)
		if asked.Load() != before {
			t.Error("a refused request reached the backend")
		}
		ask("status.test", "/?x=good", nil).WantStatus(t, 200)
		if got := ask("redirect.test", "/?x=bad", nil).WantStatus(t, 302).Header.Get("Location"); got != "https://else.test/" {
			t.Errorf("redirected to %q", got)
		}
		ask("response.test", "/", http.Header{"Leak": {"key"}}).WantStatus(t, 403)
		ask("response.test", "/", nil).WantStatus(t, 200)
		ask("id.test", "/", http.Header{"Number": {"4711"}}).WantStatus(t, 200)
		ask("rewritten.test", "/original", nil).WantStatus(t, 406)
		if echo := ask("rewritten.test", "/other", nil).WantStatus(t, 200).Echo; echo == nil || echo.Target != "/new" {
			t.Errorf("the backend got %+v", echo)
		}
		ask("private.test", "/?x=bad", nil).WantStatus(t, 401)
		password := http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}}
		ask("private.test", "/?x=bad", password).WantStatus(t, 418)
		ask("private.test", "/?x=good", password).WantStatus(t, 200)
	})
	headgatetest.Eventually(t, "the log has the ID of a request", func() bool { return strings.Contains(g.Log.String(), "x-4711") })
}

// TestBadRules: rules that NGINX does not take deny the paths of their Ingress, and nothing
// else.
func TestBadRules(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Options{Manifests: ingress("good", rules("SecRuleEngine On", `SecRule ARGS:x "@streq bad" "id:1,phase:2,deny,status:418"`))})
	g.Get("good.test", "/?x=bad").WantStatus(t, 418)
	failures := g.Value(g.Metrics.ReloadFailures)
	for name, text := range map[string]string{
		"twice":   "SecAction id:5,pass\nSecRule ARGS:x \"@streq a\" \"id:6\"\nSecRule ARGS:x \"@streq a\" \"id:6\"",
		"phase":   "SecRule ARGS:x \"@streq a\" \"phase:2,deny\"",
		"program": "SecRuleScript /etc/passwd.lua id:1",
		"reads":   "SecRule ARGS \"@pmFromFile /etc/passwd\" id:1,deny",
		"address": "SecRule REMOTE_ADDR \"@ipMatch nonsense\" id:1,deny",
		"target":  "SecRuleUpdateTargetById 1 !NONE:x",
	} {
		g.Apply(ingress(name, rules("SecRuleEngine On", text)))
		g.Get(name+".test", "/").WantStatus(t, 503)
	}
	g.ApplyReloading(ingress("later", rules("SecRuleEngine On", `SecRule ARGS:x "@streq bad" "id:1,phase:2,deny,status:406"`)))
	g.Get("later.test", "/?x=bad").WantStatus(t, 406)
	g.Get("good.test", "/?x=bad").WantStatus(t, 418)
	if got := g.Value(g.Metrics.ReloadFailures); got != failures {
		t.Errorf("%d reloads failed", got-failures)
	}
	for _, part := range []string{"line 2: Rules must have an ID", `msg="Rule id: 6 is duplicated" object=ingress/default/twice`, "SecRuleScript is not allowed", "@pmFromFile is not allowed"} {
		if !strings.Contains(g.Log.String(), part) {
			t.Errorf("no finding says %q", part)
		}
	}
}

// TestEverywhere: the key, which an annotation switches off.
func TestEverywhere(t *testing.T) {
	t.Parallel()
	g := start(t, headgatetest.Options{Manifests: headgatetest.Ingress("on", "on.test", "/", "a") +
		headgatetest.Ingress("off", "off.test", "/", "a", "enable-modsecurity: false") +
		headgatetest.Ingress("more", "more.test", "/", "a", rules(`SecRule ARGS:x "@streq bad" "id:1,phase:2,deny,status:418"`)) +
		headgatetest.Ingress("detects", "detects.test", "/", "a", rules("SecRuleEngine DetectionOnly"))},
		"enable-modsecurity: true", "enable-owasp-modsecurity-crs: true", "modsecurity-snippet: SecRuleEngine On")
	attack := func(host string) int {
		return g.Do(headgatetest.Request{Host: host, Path: injection, Header: browser()}).Status
	}
	for host, want := range map[string]int{"on.test": 403, "off.test": 200, "more.test": 403, "detects.test": 200} {
		if got := attack(host); got != want {
			t.Errorf("an attack on %s: status %d, want %d", host, got, want)
		}
	}
	g.Do(headgatetest.Request{Host: "more.test", Path: "/?x=bad", Header: browser()}).WantStatus(t, 418)
	g.ApplyReloading(headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical", "enable-modsecurity: true",
		"modsecurity-snippet: SecRuleEngine On"))
	if got := attack("on.test"); got != 200 {
		t.Errorf("without the core rules: status %d", got)
	}
}

// TestBadKey: with rules of the administrator's that NGINX does not take, Headgate starts, the
// paths with them answer 503, one finding at the ConfigMap has the line, and other changes go on.
func TestBadKey(t *testing.T) {
	t.Parallel()
	config := func(rules string) string {
		return headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical", "enable-modsecurity: true", "modsecurity-snippet: "+rules)
	}
	const bad = "SecRuleEngine On\nSecRuleEngin On"
	off := func(name string) string {
		return headgatetest.Ingress(name, name+".test", "/", "a", "enable-modsecurity: false")
	}
	g := start(t, headgatetest.Options{Manifests: headgatetest.Ingress("on", "on.test", "/", "a") + off("off") +
		ingress("own", rules(`SecRule ARGS:x "@streq bad" "id:1,phase:2,deny,status:418"`))}, "enable-modsecurity: true", "modsecurity-snippet: "+bad)
	statuses := func(want map[string]int) {
		t.Helper()
		for host, status := range want {
			if got := g.Get(host+".test", "/").Status; got != status {
				t.Errorf("%s: status %d, want %d", host, got, status)
			}
		}
	}
	statuses(map[string]int{"on": 503, "own": 503, "off": 200})
	found := 0
	for line := range strings.Lines(g.Log.String()) {
		if strings.Contains(line, "InvalidValue") {
			found++
			if !strings.Contains(line, "configmap/default/headgate") || !strings.Contains(line, "field=modsecurity-snippet") || !strings.Contains(line, `"line 2: `) {
				t.Errorf("a finding is %s", line)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d findings of invalid values", found)
	}
	g.ApplyReloading(config("SecRuleEngine On"))
	statuses(map[string]int{"on": 200, "own": 200, "off": 200})
	g.Get("own.test", "/?x=bad").WantStatus(t, 418)
	g.Apply(config(bad))
	statuses(map[string]int{"on": 503, "own": 503, "off": 200})
	// Others are reloaded meanwhile.
	g.ApplyReloading(headgatetest.Ingress("buffered", "buffered.test", "/", "a", "enable-modsecurity: false", "proxy-buffering: on", "proxy-buffers-number: 5"))
	statuses(map[string]int{"buffered": 200, "on": 503})
	if got := g.Value(g.Metrics.ReloadFailures); got != 0 {
		t.Errorf("%v reloads failed", got)
	}
}

// TestManyRuleSets: beyond the bound, the paths of younger Ingresses answer 503.
func TestManyRuleSets(t *testing.T) {
	t.Parallel()
	var manifests strings.Builder
	for i := range 22 {
		manifests.WriteString(strings.Replace(ingress(fmt.Sprintf("many%02d", i), rules("SecRuleEngine On", fmt.Sprintf(`SecRule ARGS:x "@streq bad" "id:%d,phase:2,deny,status:418"`, i+1))),
			"metadata:\n", fmt.Sprintf("metadata:\n  creationTimestamp: 2026-01-01T00:00:%02dZ\n", i), 1))
	}
	g := start(t, headgatetest.Options{Manifests: manifests.String() + headgatetest.Ingress("plain", "plain.test", "/", "a")})
	for i, want := range map[int]int{0: 418, 19: 418, 20: 503, 21: 503} {
		// On a busy machine not all rules are tested before the start.
		headgatetest.Eventually(t, fmt.Sprintf("Ingress %d answers %d", i, want), func() bool { return g.Get(fmt.Sprintf("many%02d.test", i), "/?x=bad").Status == want })
	}
	g.Get("plain.test", "/").WantStatus(t, 200)
	headgatetest.Eventually(t, "a finding says that there are too many", func() bool {
		return strings.Contains(g.Log.String(), "more than 20 different values of modsecurity snippet")
	})
}
