package dataplane_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const useRegex = "use-regex: true"

var patternCases = []pathCase{
	{"not-anchored-at-end", []string{"ImplementationSpecific /foo a", "ImplementationSpecific / b", "", useRegex}, []string{
		"/foobar a", "/foo/bar a", "/fo b", "/x/foo b",
	}},
	{"case-blind", []string{"ImplementationSpecific /Foo a", "", useRegex}, []string{"/foo a", "/FOO/bar a", "/fooBAR a", "/ 404"}},
	{"end-anchor", []string{"ImplementationSpecific /foo$ a", "Prefix / b", "", useRegex}, []string{"/foo a", "/foo/ b", "/foobar b", "/foo?x a"}},
	{"exact", []string{"Exact /foo a", "Prefix /bar b", "", useRegex}, []string{"/foo a", "/foobar a", "/FOO a", "/barn b", "/bar/x b"}},
	{"encoded", []string{"ImplementationSpecific /a␣b/[0-9]+ a", "ImplementationSpecific /files/.+/x b", "Prefix / c", "", useRegex}, []string{
		"/a%20b/7 a", "/files/p%2Fq/x b", "/files//x c", "/a%20b/x c", "/files/../a%20b/1 a",
	}},
	{"length", []string{"ImplementationSpecific /foo/.* a", "ImplementationSpecific /foo/bar/.+ b", "ImplementationSpecific /foo/bar/baz c", "", useRegex}, []string{
		"/foo/bar/baz c", "/foo/bar/x b", "/foo/x a",
	}},
	{"same-length", []string{"ImplementationSpecific /foo/[a-m] a", "ImplementationSpecific /foo/[b-z] b", "", useRegex}, []string{
		"/foo/a a", "/foo/c b", "/foo/z b",
	}},
	{"alternation", []string{"ImplementationSpecific /foo|/bar a", "ImplementationSpecific / b", "", useRegex}, []string{
		"/foo a", "/bar a", "/x/bar a", "/x/foo b",
	}},
	{"high-bytes", []string{"ImplementationSpecific /caf.{2}/x a", "Prefix / b", "", useRegex}, []string{"/caf%C3%A9/x a", "/caf%C3%A9 b", "/caf%FF%FE/X a"}},
	{"broken", []string{"ImplementationSpecific /foo( a", "Prefix /bar b", "", useRegex}, []string{"/foo( 404", "/bar b"}},
	{"plain", []string{"Prefix /foo a"}, []string{"/foo a", "/foobar 404", "/FOO 404"}},
}

func TestPatterns(t *testing.T) { checkPaths(t, patternCases) }

// A pattern that takes forever is given up, and no other route, which may
// guard less, answers instead: not without the password that its own wants, and
// not with it. The worker goes on meanwhile.
func TestExplodingPattern(t *testing.T) {
	t.Parallel()
	backends := record{seen: map[string]string{}}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", backends.backend(t, "a")) + usersSecret +
		ruled("bomb", "bomb.test ImplementationSpecific /(a+)+$ a", "", useRegex, "auth-type: basic", "auth-secret: users") +
		ruled("open", "bomb.test Prefix / a")})
	exploding := "/" + strings.Repeat("a", 60) + "!"
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, c := range []struct {
			path, mark string
			key        http.Header
			status     int
		}{
			{"/aaaa", "no password", nil, 401},
			{"/aaaa", "password", password, 200},
			{exploding, "exploding", nil, 500},
			{exploding, "exploding with password", password, 500},
			{"/b", "open", nil, 200},
		} {
			mark := fmt.Sprint(c.mark, " ", scheme, " ", http2)
			r := headgatetest.Request{Host: "bomb.test", Path: c.path, Scheme: scheme, HTTP2: http2, Header: http.Header{"X-Mark": {mark}}}
			maps.Copy(r.Header, c.key)
			answer := g.Do(r)
			if reached := backends.of(mark) != ""; answer.Status != c.status || reached != (c.status == 200) {
				t.Errorf("%s: status %d, want %d; the backend got it: %v", mark, answer.Status, c.status, reached)
			}
		}
	})
	if !strings.Contains(g.Log.String(), "host bomb.test: match ^/(a+)+$, of namespace default: ") {
		t.Errorf("the log does not say which pattern gave up:\n%s", g.Log)
	}
}

// Names that an alias takes forever for cost the worker only so much: it is
// tried no more. The aliases of other Ingresses still work.
func TestExplodingAlias(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", startWire(t, "X-Wire: a\r\n").address) +
		ruled("bomb", "bomb.test Prefix / a", "", `server-alias: ~^(a+)+$`) +
		ruled("good", "good.test Prefix / a", "", `server-alias: ~^good[0-9]+$`)})
	checkPath(t, g, "aaaa", "/ a")
	const struck = "is disabled until aliases change"
	for i := 0; !strings.Contains(g.Log.String(), struck); i++ {
		if i == 100 {
			t.Fatalf("it is still tried:\n%s", g.Log)
		}
		g.Get(strings.Repeat("a", 60)+strconv.Itoa(i), "/").WantStatus(t, 404)
	}
	checkPath(t, g, "aaaaa", "/ 404")
	checkPath(t, g, "good1", "/ a")
	checkPath(t, g, strings.Repeat("good.", 50)+"good1", "/ 404")
	g.Get(strings.Repeat("x", 5000), "/").WantStatus(t, 404)
	g.Apply(ruled("good", "good.test Prefix / a", "", `server-alias: ~^good[0-9]$`))
	headgatetest.Eventually(t, "it is tried again", func() bool { return g.Get("aaaaa", "/").Status == 200 })
}

func TestAliases(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", startWire(t, "X-Wire: a\r\n").address) +
		served("b", startWire(t, "X-Wire: b\r\n").address) +
		ruled("one", "one.test Prefix / a", "", `server-alias: www.one.test, *.one.net, one.*, ~^v[0-9]+\.test$, ~numbered`) +
		ruled("two", "two.test Prefix / b", "*.w.test Prefix / b", "", "server-alias: *.deep.one.net, *.test, one.two.*")})
	for _, c := range []struct{ host, want string }{
		{"one.test", "/ a"},
		{"www.one.test", "/ a"},
		{"WWW.One.test.:80", "/ a"},
		{"x.one.net", "/ a"},
		{"x.y.one.net", "/ a"},
		{"one.net", "/ a"}, // by one.*
		{"x.deep.one.net", "/ b"},
		{"deep.one.net", "/ a"},
		{"one.two.three", "/ b"},
		{"one.three.two", "/ a"},
		{"one.", "/ 404"},
		{"x.w.test", "/ b"},
		{"other.test", "/ b"}, // *.test
		{"v1.test", "/ b"},    // wildcards before expressions
		{"v1.tests", "/ 404"},
		{"x-numbered-y.example", "/ a"},
		{"v1.test.evil", "/ 404"},
	} {
		t.Run(c.host, func(t *testing.T) { checkPath(t, g, c.host, c.want) })
	}
	pushes := g.State().Revision
	g.Apply(ruled("one", "one.test Prefix / a"))
	checkPath(t, g, "www.one.test", "/ b") // by *.test
	checkPath(t, g, "x.one.net", "/ 404")
	if g.State().Revision == pushes {
		t.Error("nothing was pushed")
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads", n)
	}
}
