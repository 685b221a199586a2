package dataplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// explained are URLs, with a method before them if it is not GET, of which the
// explanation is compared with what NGINX answers, with headers of the request
// behind them.
var explained = []string{
	"http://plain.test/", "http://plain.test/foo", "http://plain.test/foobar", "http://plain.test/foo/bar", "http://plain.test/foo/bar/",
	"http://plain.test/FOO", "http://plain.test/dir", "http://plain.test/dir?x=%20y", "http://plain.test/dir/x", "http://plain.test/%66oo",
	"http://plain.test/x/..%2ffoo//y", "http://plain.test/%zz", "http://plain.test/../x",
	"http://plain.test/exact", "http://plain.test/exact?x=1", "http://plain.test/exact/", "http://plain.test/exact/x",
	"http://root.test/", "http://root.test/x", "http://root.test/foo", "http://root.test/foo/x",
	"http://regex.test/login", "http://regex.test/LOGIN/x", "http://regex.test/loginpage", "http://regex.test/l12n", "http://regex.test/other",
	"http://a.wild.test/", "http://own.wild.test/", "http://own.wild.test/x", "http://a.b.wild.test/",
	"http://also.test/foo", "http://x.also.example/", "http://r7.test/", "http://also.secure.test/",
	"http://secure.test/a/", "https://secure.test/a/", "http://secure.test/.well-known/acme-challenge/t", "https://other.test/",
	"http://forced.test/x?y=/", "https://forced.test/", "http://denied.test/", "https://denied.test/",
	"http://empty.test/", "http://spare.test/", "http://missing.test/", "http://rest.test/", "http://rest.test/x",
	"http://moved.test/x", "http://moved.test/", "https://moved.test/to/x", "http://www.moved.test/x/?y=1", "https://www.moved.test/",
	"http://cors.test/", "OPTIONS http://cors.test/", "OPTIONS http://cors.test/moved", "OPTIONS http://denied.test/",
	"http://to.test/x", "http://to.test/from/x%20y?z=%20", "http://to.test/from/?", "http://to.test/FROM/a/b", "https://to.test/from/x",
	"http://wide.test/there/path?a=b | X-Way: one", "http://wide.test/there/path", "https://wide.test/there/a | Cookie: c=d; way=two",
	"http://inner.test/a/x", "http://started.test/", "http://started.test/?a=b", "http://started.test/x", "https://started.test/",
	"http://www-alias.test/x?y=1", "http://www.www-alias.test/x?y=1", "https://www.www-alias.test/", "http://www.pair.test/x", "http://pair.test/x",
	"http://canary.test/", "http://canary.test/ | X-Next: always", "http://canary.test/ | X-Next: never", "http://canary.test/ | X-Next: Always",
	"http://canary.test/ | X-Next: never | Cookie: next=always", "http://canary.test/ | Cookie: a=b; next=always",
	"http://canary.test/ | Cookie: NEXT=always", "http://canary.test/ | Cookie: next=never", "http://canary.test/ | Cookie: anext=always",
	"http://canary.test/region | Region: eu-1", "http://canary.test/region | Region: us-1", "http://canary.test/region",
	"http://canary.test/value | Stage: blue", "http://canary.test/value | Stage: always", "http://canary.test/value | Stage: Blue",
	"http://canary.test/bomb | Region: aaaa", "http://canary.test/bomb | Region: " + strings.Repeat("a", 60) + "!", "http://canary.test/bomb",
	"http://canary.test/broken | Region: aaaa", "http://canary.test/broken",
	"http://canary.test/all", "http://canary.test/gone | X-Next: always", "http://canary.test/rescued | X-Next: always", "http://canary.test/rescued",
	"http://full.test/ | Content-Length: 9", "http://full.test/ | Content-Length: 8",
	"http://guarded.test/", "https://guarded.test/", "https://guarded.test/moved", "https://guarded.test/empty", "https://guarded.test/missing",
	"https://guarded.test/ | Content-Length: 9", "https://guarded.test/jump", "https://guarded.test/jump | Content-Length: 9",
	"https://guarded.test/usual | Content-Length: 1048577", "https://guarded.test/usual-missing | Content-Length: 1048577",
	"https://keyed.test/none", "https://small.test/none | Content-Length: 9", "https://small.test/none",
	"https://guarded.test/asked", "https://guarded.test/any", "https://guarded.test/any | Authorization: Basic dTpw",
	"http://listed.test/", "http://listed.test/not", "http://listed.test/denied", "http://listed.test/missing", "http://listed.test/any", "http://listed.test/moved",
	"http://plain.test/foo | User-Agent: BadBot", "http://unknown.test/ | User-Agent: an-EVIL-one", "http://plain.test/foo | Referer: http://spam.test/",
	"http://unknown.test/", "http://unknown.test/healthz", "http://unknown.test/nginx_status", "http://127.0.0.1/", "http://_/",
}

func explainManifests(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, service := range []string{"a", "b", "c", "d"} {
		b.WriteString(served(service, startWire(t, "X-Wire: "+service+"\r\n").address))
	}
	b.WriteString(served("empty"))
	b.WriteString(ruled("plain", "plain.test Prefix /foo a", "plain.test Prefix /foo/bar b", "plain.test Exact /foo/bar c", "plain.test Prefix /dir/ d", "plain.test Exact /exact/ d",
		"", "server-alias: also.test, *.also.example, ~^r[0-9]+\\.test$"))
	b.WriteString(ruled("regex", "regex.test ImplementationSpecific /l.*n a", "", "use-regex: true"))
	b.WriteString(ruled("root", "root.test Exact / a", "root.test Prefix /foo b", "", "use-regex: true"))
	b.WriteString(ruled("other", "regex.test Exact /login b", "regex.test Prefix /l c"))
	b.WriteString(ruled("wild", "*.wild.test Prefix / a"))
	b.WriteString(ruled("own", "own.wild.test Prefix /x b"))
	b.WriteString(headgatetest.WithTLS(ruled("secure", "secure.test Prefix / a"), "pair secure.test"))
	b.WriteString(headgatetest.TLSSecret("pair", headgatetest.NewKeyPair(t, "secure.test", "secure.test")))
	b.WriteString(ruled("forced", "forced.test Prefix / b", "", "force-ssl-redirect: true", "preserve-trailing-slash: true"))
	b.WriteString(ruled("denied", "denied.test Prefix / a", "", "auth-url: auth.test"))
	b.WriteString(ruled("cors", "cors.test Prefix / empty", "", "enable-cors: true", "cors-allow-origin: *, https://a.test"))
	b.WriteString(ruled("shared", "cors.test Prefix /moved a", "", "enable-cors: true", "permanent-redirect: https://new.test/"))
	b.WriteString(ruled("moved", "moved.test Prefix / a", "", "from-to-www-redirect: true", "app-root: /start"))
	b.WriteString(ruled("temporal", "moved.test Prefix /x a", "", "temporal-redirect: https://new.test/"))
	b.WriteString(ruled("permanent", "moved.test Prefix /to/ a", "", "permanent-redirect: /there", "permanent-redirect-code: 308"))
	b.WriteString("---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{SHA}qvTGHdzF6KLavt4PO0gs2a6pQ00='}\n")
	guard := []string{"", "auth-type: basic", "auth-secret: users", "force-ssl-redirect: true", "proxy-body-size: 8"}
	b.WriteString(ruled("guarded", append([]string{"guarded.test Prefix / a", "guarded.test Exact /empty empty", "guarded.test Exact /missing missing"}, guard...)...))
	b.WriteString(ruled("keyed", append([]string{"keyed.test Prefix /x a"}, guard[:4]...)...))
	b.WriteString(ruled("small", "small.test Prefix /x a", "", "proxy-body-size: 8"))
	b.WriteString(ruled("guarded-moved", append(append([]string{"guarded.test Exact /moved a"}, guard...), "temporal-redirect: https://new.test/")...))
	b.WriteString(ruled("guarded-usual", append([]string{"guarded.test Exact /usual a", "guarded.test Exact /usual-missing missing"}, guard[:4]...)...))
	b.WriteString(ruled("guarded-jump", append(append([]string{"guarded.test Prefix /jump a"}, guard...), "proxy-buffer-size: 8k")...))
	b.WriteString(served("auth", headgatetest.StartEcho(t, "auth")))
	const url = "auth-url: http://auth.default.svc/"
	b.WriteString(ruled("guarded-asked", append(append([]string{"guarded.test Prefix /asked a"}, guard...), url)...))
	b.WriteString(ruled("guarded-any", append(append([]string{"guarded.test Prefix /any a"}, guard...), url, "satisfy: any")...))
	b.WriteString(ruled("listed", "listed.test Prefix / a", "", "allowlist-source-range: 127.0.0.0/8"))
	b.WriteString(ruled("listed-not", "listed.test Exact /not a", "listed.test Exact /missing missing", "", "allowlist-source-range: 127.0.0.2,::1"))
	b.WriteString(ruled("listed-denied", "listed.test Exact /denied a", "", "allowlist-source-range: 127.0.0.0/8", "denylist-source-range: 127.0.0.1"))
	b.WriteString(ruled("listed-any", append(append([]string{"listed.test Exact /any a"}, guard[:3]...), "satisfy: any", "denylist-source-range: 192.0.2.1")...))
	b.WriteString(ruled("listed-moved", "listed.test Exact /moved a", "", "denylist-source-range: 127.0.0.1", "temporal-redirect: https://new.test/"))
	b.WriteString(headgatetest.Config("block-user-agents: BadBot,~*evil", "block-referers: ~spam", "block-cidrs: 192.0.2.0/24"))
	b.WriteString(ruled("empty", "empty.test Prefix / empty", "missing.test Prefix / missing"))
	b.WriteString(ruled("spare", "spare.test Prefix / empty", "", "default-backend: d"))
	b.WriteString(ruled("to", "to.test ImplementationSpecific /from/(.*) a", "", "rewrite-target: https://new.test/$1"))
	b.WriteString(ruled("wide", "wide.test ImplementationSpecific /there(/.*) a", "",
		"rewrite-target: http://$http_x_way.$cookie_way.$host/$scheme/$request_method/$args$1$2"))
	b.WriteString(ruled("inner", "inner.test ImplementationSpecific /a/(.*) a", "", "rewrite-target: /b/$1"))
	b.WriteString(ruled("started", "started.test Prefix / a", "", "app-root: /start/$host/$scheme"))
	b.WriteString(ruled("www-alias", "www-alias.test Prefix / a", "", "from-to-www-redirect: true"))
	b.WriteString(ruled("pair", "pair.test Prefix / a", "", "from-to-www-redirect: true"))
	b.WriteString(ruled("www-pair", "www.pair.test Prefix / b"))
	b.WriteString(ruled("full", "full.test Prefix / a", "", "proxy-body-size: 8"))
	b.WriteString(ruled("canary", "canary.test Prefix / a", "canary.test Exact /region a", "canary.test Exact /value a", "canary.test Exact /all a", "canary.test Exact /bomb a", "canary.test Exact /broken a",
		"canary.test Exact /gone a", "canary.test Exact /rescued empty"))
	for path, annotations := range map[string][]string{
		"Prefix / b":          {"canary-by-header: X-Next", "canary-by-cookie: next"},
		"Exact /region b":     {"canary-by-header: Region", "canary-by-header-pattern: ^eu-"},
		"Exact /value b":      {"canary-by-header: Stage", "canary-by-header-value: blue"},
		"Exact /all b":        {"canary-weight: 100"},
		"Exact /bomb b":       {"canary-by-header: Region", "canary-by-header-pattern: ^(a+)+$", "canary-weight: 100"},
		"Exact /broken b":     {"canary-by-header: Region", "canary-by-header-pattern: a(a", "canary-weight: 100"},
		"Exact /gone missing": {"canary-by-header: X-Next", "canary-weight: 100"},
		"Exact /rescued b":    {"canary-by-header: X-Next"},
	} {
		name := "next-" + strings.Trim(strings.Fields(path)[1], "/")
		b.WriteString(ruled(strings.Trim(name, "-"), append([]string{"canary.test " + path, "", "canary: true"}, annotations...)...))
	}
	b.WriteString("---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: rest}\n" +
		"spec:\n  defaultBackend: {service: {name: d, port: {number: 80}}}\n" +
		"  rules:\n  - host: rest.test\n    http: {paths: [{path: /x, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}\n")
	return b.String()
}

// TestPredicted: a feature whose Lua may answer a request simulates that in Go or
// declares a sentence about it; one that chooses a backend simulates that.
func TestPredicted(t *testing.T) {
	answers := regexp.MustCompile(`\b_M\.(?:admit|rewrite|preaccess|authenticate)\b|\[?"?\b(?:rewrite|preaccess|authenticate)\b"?\]?\s*=\s*function`)
	chooses := regexp.MustCompile(`\b_M\.select_backend\b`)
	var predicting []string
	for _, f := range all.Features() {
		predicts := len(f.Predict) > 0
		source := luaOf(t, f)
		if answers.MatchString(source) && !predicts {
			t.Errorf("%s may answer requests, and has no Predict: explain would be wrong about it", f.Name)
		}
		// ModSecurity is a module of NGINX.
		if predicts && !answers.MatchString(source) && f.Name != "modsecurity" {
			t.Errorf("%s predicts what its Lua never answers", f.Name)
		}
		if chooses.MatchString(source) != (f.Choose != nil) {
			t.Errorf("%s chooses a backend either in Lua or in Go: explain would be wrong about it", f.Name)
		}
		if predicts {
			predicting = append(predicting, f.Name)
		}
	}
	if len(predicting) < 4 {
		t.Errorf("only %v predict anything", predicting)
	}
}

// What is explained through the controller's socket is what NGINX answers, and
// which versions its workers answer by.
func checkExplain(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, explainManifests(t))
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	g := &headgatetest.Instance{HTTP: p.http, HTTPS: p.https}
	for _, asked := range explained {
		p.compareExplained(g, asked)
	}
	p.checkWorkers(g)

	output, err := exec.Command(binary, "explain", "--run-dir", p.dir, "http://plain.test/foo").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{"\nRoute        prefix /foo -> default/a/80\n", "\nNGINX        generation 1 serves\n", "             worker "} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the text lacks %q:\n%s", want, output)
		}
	}
}

// compareExplained compares an explanation with what NGINX answers.
func (p *program) compareExplained(g *headgatetest.Instance, asked string) {
	p.t.Helper()
	parts := strings.Split(asked, " | ")
	e := p.explain(parts[0], parts[1:]...)
	method, link := methodOf(parts[0])
	scheme, rest, _ := strings.Cut(link, "://")
	host, path, _ := strings.Cut(rest, "/")
	request := headgatetest.Request{Method: method, Scheme: scheme, Host: host, Path: "/" + path, Header: http.Header{}}
	for _, line := range parts[1:] {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Host":
			request.Host = value
		case "Content-Length":
			length, err := strconv.Atoi(value)
			if err != nil {
				p.t.Fatal(err)
			}
			request.Method, request.Body = http.MethodPost, strings.NewReader(strings.Repeat("x", length))
		default:
			request.Header.Add(name, value)
		}
	}
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	r, err := g.Try(client, request)
	if err != nil {
		p.t.Fatalf("%s: %v", asked, err)
	}
	got := fmt.Sprint(r.Status, " ", r.Header.Get("Location"))
	if service := r.Header.Get("X-Wire"); service != "" {
		got = "default/" + service
	}
	want := fmt.Sprint(e.Answers[0].Status, " ", e.Answers[0].Location)
	if backend := e.Answers[0].Backend; backend != "" {
		want = backend[:strings.LastIndexByte(backend, '/')]
	}
	if got != want {
		p.t.Errorf("%s: NGINX answers %s, explained is %s", asked, got, want)
	}
	if r.TLS != nil {
		if own := slices.Contains(r.TLS.PeerCertificates[0].DNSNames, "ingress.local"); own != e.Certificate.Default {
			p.t.Errorf("%s: NGINX shows a certificate for %v, explained is %+v", asked, r.TLS.PeerCertificates[0].DNSNames, e.Certificate)
		}
	}
}

// checkWorkers looks at what workers hold before and after a change.
func (p *program) checkWorkers(g *headgatetest.Instance) {
	p.t.Helper()
	const asked = "http://own.wild.test/x"
	before := p.version(p.explain(asked), "own.wild.test")
	p.wantHolds(g, asked, before, true)
	p.write("manifests/own.yaml", ruled("own-more", "own.wild.test Prefix /more c"), 0o644)
	var after string
	headgatetest.Eventually(p.t, "the host has another version", func() bool {
		e := p.explain(asked)
		after = p.version(e, "own.wild.test")
		return after != before && !slices.ContainsFunc(e.DataPlane.Units, func(u report.Stored) bool { return !u.Current })
	})
	// No request came, so no worker has looked.
	p.wantHolds(g, asked, before, false)
	p.compareExplained(g, "http://own.wild.test/more")
	p.wantHolds(g, asked, after, true)
}

// version is that of a host's unit.
func (p *program) version(e report.Explanation, host string) string {
	p.t.Helper()
	for _, u := range e.Units {
		if u.Kind == "host" && u.Name == host {
			return u.Version
		}
	}
	p.t.Fatalf("no unit of host %s: %+v", host, e.Units)
	return ""
}

// wantHolds waits until a worker holds a version of a host, and says that it is
// the newest or is not. All workers answer, by nothing but their pids.
func (p *program) wantHolds(g *headgatetest.Instance, asked, version string, current bool) {
	p.t.Helper()
	var d *report.DataPlane
	headgatetest.Eventually(p.t, "both workers answered", func() bool {
		d = p.explain(asked).DataPlane
		return d != nil && len(d.Workers) > 1 && !slices.ContainsFunc(d.Workers, func(w report.Worker) bool { return w.Silent })
	})
	holds := 0
	for _, w := range d.Workers {
		if w.PID == p.master() || w.Generation != d.Generation {
			p.t.Errorf("worker %+v", w)
		}
		for _, u := range w.Units {
			if u.Kind == "host" && u.Version == version {
				holds++
				if u.Current != current || u.Error != "" {
					p.t.Errorf("worker %d: %+v, want current %v", w.PID, u, current)
				}
			}
		}
	}
	if holds == 0 {
		p.t.Errorf("no worker holds version %s: %+v", version, d.Workers)
	}
}

// methodOf takes apart what is asked.
func methodOf(asked string) (method, link string) {
	if method, link, ok := strings.Cut(asked, " "); ok {
		return method, link
	}
	return http.MethodGet, asked
}

// explain asks the controller's socket.
func (p *program) explain(asked string, headers ...string) report.Explanation {
	p.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.dir, "sock", "controller.sock"))
	}}
	method, link := methodOf(asked)
	wanted := url.Values{"url": {link}, "method": {method}, "header": headers, "from": {"127.0.0.1"}}
	response, err := (&http.Client{Transport: transport}).Get("http://controller/v1/explain?" + wanted.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var e report.Explanation
	if err := json.NewDecoder(response.Body).Decode(&e); err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s, %v", asked, response.Status, err)
	}
	return e
}

// luaOf is the source of a feature's main module, empty if it has none.
func luaOf(t *testing.T, f feature.Feature) string {
	t.Helper()
	if f.Lua == nil {
		return ""
	}
	source, err := fs.ReadFile(f.Lua, f.Name+".lua")
	if errors.Is(err, fs.ErrNotExist) {
		return "" // It only chooses endpoints.
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}
