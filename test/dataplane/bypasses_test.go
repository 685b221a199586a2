package dataplane_test

import (
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A guard is a way to keep requests out, and what opens it.
type guard struct {
	name string
	// annotations of the guarded Ingress; ADDRESS is the authentication
	// service's.
	annotations []string
	// key opens it. Without one the test only knocks.
	key http.Header
	// wrong are headers that don't.
	wrong []http.Header
	// list: addresses are among it, which count where no authentication is needed too.
	list bool
	// first: it is the whole host's, and comes before all else that Headgate does with a
	// request. A test of pairs has no key to it.
	first bool
	// refusal is the status for a client without the key, 401 if it is 0.
	refusal int
	// challenge is how WWW-Authenticate begins for a client without the key.
	challenge string
	// broken are annotations with which no client gets in.
	broken map[string][]string
}

// thorough are the broken guards that get all requests. The others deny the
// route as these do, and get some.
var thorough = []string{"secret-missing", "url", "down"}

var (
	password = http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}}
	token    = http.Header{"X-Token": {"ok"}}
	users    = []string{"auth-type: basic", "auth-secret: users"}
	// either lets in clients with the password or the token.
	either = slices.Concat(users, []string{"auth-url: http://ADDRESS/check", "satisfy: any"})
	guards = []guard{
		{
			name: "basic", annotations: []string{"auth-type: basic", "auth-secret: users", "auth-realm: Authentication Required - foo"},
			key: password, wrong: []http.Header{{"Authorization": {"Basic dXNlcjpubw=="}}}, challenge: "Basic ",
			broken: map[string][]string{
				"secret-missing": {"auth-type: basic", "auth-secret: missing"},
				"secret-foreign": {"auth-type: basic", "auth-secret: other/users"},
				"secret-empty":   {"auth-type: basic", "auth-secret: empty"},
				"no-secret":      {"auth-type: basic"},
				"realm":          {"auth-type: basic", "auth-secret: users", "auth-realm: a\"b"},
				"type":           {"auth-type: none", "auth-secret: users"},
				"secret-type":    {"auth-type: basic", "auth-secret: users", "auth-secret-type: file"},
			},
		},
		{
			name: "url", annotations: []string{"auth-url: http://ADDRESS/check"},
			key: token, wrong: []http.Header{{"X-Token": {"no"}}},
			broken: map[string][]string{
				"url":      {"auth-url: http://ADDRESS/{x}"},
				"scheme":   {"auth-url: ADDRESS/check"},
				"host":     {"auth-url: http://$http_x/check"},
				"down":     {"auth-url: http://127.0.0.1:1/check"},
				"method":   {"auth-url: http://ADDRESS/check", "auth-method: get"},
				"cookie":   {"auth-url: http://ADDRESS/check", "auth-always-set-cookie: perhaps"},
				"duration": {"auth-url: http://ADDRESS/check", "auth-cache-duration: 200;5m"},
				"redirect": {"auth-url: http://ADDRESS/check", "auth-request-redirect: {x}"},
				"headers":  {"auth-url: http://ADDRESS/check", "auth-response-headers: a b"},
				"more":     {"auth-url: http://ADDRESS/check", "auth-proxy-set-headers: nothing"},
				"snippet":  {"auth-url: http://ADDRESS/check", "auth-snippet: set $a b; auth_basic off;"},
			},
		},
		{
			name: "both", annotations: []string{"auth-type: basic", "auth-secret: users", "auth-url: http://ADDRESS/check"},
			key: http.Header{"Authorization": password["Authorization"], "X-Token": token["X-Token"]}, wrong: []http.Header{password, token}, challenge: "Basic ",
			broken: map[string][]string{
				"secret-missing": {"auth-type: basic", "auth-secret: missing", "auth-url: http://ADDRESS/check"},
				"down":           {"auth-type: basic", "auth-secret: users", "auth-url: http://127.0.0.1:1/check"},
				"url":            {"auth-type: basic", "auth-secret: users", "auth-url: http://ADDRESS/{x}"},
			},
		},
		{
			name: "any-password", annotations: either, key: password, wrong: []http.Header{{"Authorization": {"Basic dXNlcjpubw=="}, "X-Token": {"no"}}}, challenge: "Basic ",
			broken: map[string][]string{
				"url": slices.Concat(users, []string{"satisfy: any", "auth-url: http://ADDRESS/{x}"}),
			},
		},
		{
			name: "any-token", annotations: either, key: token, wrong: []http.Header{{"Authorization": {"Basic dXNlcjpubw=="}, "X-Token": {"no"}}}, challenge: "Basic ",
			broken: map[string][]string{
				"secret-missing": {"satisfy: any", "auth-url: http://ADDRESS/check", "auth-type: basic", "auth-secret: missing"},
				"realm":          slices.Concat(either, []string{"auth-realm: a\"b"}),
				"down":           slices.Concat(users, []string{"satisfy: any", "auth-url: http://127.0.0.1:1/check"}),
				"method":         slices.Concat(either, []string{"auth-method: get"}),
			},
		},
		// Which clients may pass is in internal/feature/addresslist.
		{
			name: "allow", annotations: []string{"allowlist-source-range: 192.0.2.0/24"}, wrong: []http.Header{{"X-Forwarded-For": {"192.0.2.7"}, "X-Real-Ip": {"192.0.2.7"}}},
			list: true, refusal: http.StatusForbidden,
			broken: map[string][]string{
				"entry": {"allowlist-source-range: 127.0.0.0/8,nonsense"},
				"empty": {"allowlist-source-range: ''"},
				"old":   {"allowlist-source-range: ''", "whitelist-source-range: 127.0.0.1/33"},
			},
		},
		{
			name: "deny", annotations: []string{"denylist-source-range: 127.0.0.0/8"}, wrong: []http.Header{{"X-Forwarded-For": {"192.0.2.7"}, "Forwarded": {"for=192.0.2.7"}}},
			list: true, refusal: http.StatusForbidden,
			broken: map[string][]string{"entry": {"denylist-source-range: 192.0.2.0/24,nonsense"}},
		},
		{
			name: "allow-password", annotations: slices.Concat(users, []string{"allowlist-source-range: 192.0.2.0/24", "satisfy: any"}),
			list: true, key: password, wrong: []http.Header{{"X-Forwarded-For": {"192.0.2.7"}}}, challenge: "Basic ",
			broken: map[string][]string{"entry": slices.Concat(users, []string{"allowlist-source-range: 192.0.2.0/24,nonsense", "satisfy: any"})},
		},
		// Which clients may pass is in internal/feature/clientcert. The subject counts over
		// http too.
		{
			name: "certificate", annotations: []string{"auth-tls-secret: default/authorities", "auth-tls-match-cn: CN=client"}, first: true,
			wrong: []http.Header{
				{"Ssl-Client-Verify": {"SUCCESS"}, "Ssl-Client-Subject-Dn": {"CN=client"}},
				{"X-Forwarded-Proto": {"https"}, "Ssl-Client-Cert": {"client"}}, password,
			},
			broken: map[string][]string{
				"secret-missing":      {"auth-tls-secret: default/missing"},
				"secret-foreign":      {"auth-tls-secret: other/users"},
				"secret-empty":        {"auth-tls-secret: default/empty"},
				"secret-no-namespace": {"auth-tls-secret: authorities"},
				"secret-none":         {"auth-tls-secret: ''"},
				"no-secret":           {"auth-tls-verify-client: on"},
				"subject":             {"auth-tls-secret: default/authorities", "auth-tls-match-cn: client"},
				"expression":          {"auth-tls-secret: default/authorities", "auth-tls-match-cn: CN=("},
				"page":                {"auth-tls-secret: default/authorities", "auth-tls-error-page: not a page;"},
				"pass":                {"auth-tls-secret: default/authorities", "auth-tls-pass-certificate-to-upstream: x"},
			},
		},
		// What limits refuse is in internal/feature/ratelimit: here they let pass, and must not
		// replace another guard.
		{
			name: "limit", annotations: slices.Concat(users, []string{"limit-rps: 1000000", "limit-connections: 1000", "limit-allowlist: 192.0.2.0/24"}),
			key: password, wrong: []http.Header{{"Authorization": {"Basic dXNlcjpubw=="}}}, challenge: "Basic ",
			broken: map[string][]string{
				"rps":         {"limit-rps: many"},
				"rpm":         {"limit-rpm: 1r/m"},
				"connections": {"limit-connections: 1000000001"},
				"allowlist":   {"limit-rps: 1000000", "limit-allowlist: 127.0.0.0/8,nonsense"},
				"whitelist":   {"limit-rps: 1000000", "limit-whitelist: nonsense"},
			},
		},
		// What rules do is in internal/feature/modsecurity.
		{
			name: "modsecurity", annotations: []string{"enable-modsecurity: true", "modsecurity-snippet: " + refusesAll}, wrong: []http.Header{token},
			list: true, refusal: http.StatusForbidden,
			broken: map[string][]string{
				"value":    {"enable-modsecurity: perhaps"},
				"core":     {"enable-modsecurity: true", "enable-owasp-core-rules: perhaps"},
				"program":  {"enable-modsecurity: true", "modsecurity-snippet: SecRuleScript /x.lua"},
				"rejected": {"enable-modsecurity: true", "modsecurity-snippet: SecRule ARGS:x \"@streq a\" phase:2,deny"},
			},
		},
		// Which clients may pass is in internal/feature/basicauth.
		{
			name: "digest", annotations: []string{"auth-type: digest", "auth-secret: digests", "auth-realm: here"},
			wrong: []http.Header{password}, challenge: `Digest realm="here"`,
		},
	}
)

// A bypass is what leads a request another way, on the guarded Ingress itself or
// beside it.
type bypass struct {
	// annotations of the guarded Ingress; HOST is its host.
	annotations []string
	// path of the guarded Ingress, "/" if it is empty, and its Service, app if
	// that is.
	path, service string
	// secured gives the host a certificate.
	secured bool
	// beside is an Ingress beside the guarded one, which has the given
	// annotations as its guard.
	beside func(host string, guard []string) string
	// door finds the normalised paths that lead past the guard by that
	// Ingress. exempt: it has the same guard, and its path needs none.
	door   *regexp.Regexp
	exempt bool
	// under and asked stand before the host: the Ingress is for the one name,
	// and the other is asked for.
	under, asked string
	// elsewhere is set if no request reaches a backend.
	elsewhere bool
	effects   []effect
}

// An effect shows that a bypass works: the outcome of a request to the host
// without a guard.
type effect struct {
	headgatetest.Request
	// at stands before the host, instead of the bypass's asked.
	at   string
	want string
	// unlike is the bypass with which something else becomes of it, "none" if it
	// is empty.
	unlike string
}

// to is the effect that a GET of a path ends so.
func to(path, want string) effect {
	return effect{Request: headgatetest.Request{Path: path}, want: want}
}

const challenges = "/.well-known/acme-challenge"

var bypasses = map[string]bypass{
	"none":    {},
	"rewrite": {annotations: []string{"rewrite-target: /else"}, effects: []effect{to("/a/b?c=d", "app /else?c=d")}},
	"groups": {path: "/(.*)", annotations: []string{"rewrite-target: /g/$1", "use-regex: true"},
		effects: []effect{to("/a/b?c=d", "app /g/a/b?c=d")}},
	"words": {path: "/[a-z]+(/.*)?", annotations: []string{"rewrite-target: /w$1"},
		effects: []effect{to("/a/b", "app /w/b"), to("/A/B", "app /w/B"), to("/", "404")}},
	"regex":    {path: "/(NEXT/|A|x$)", annotations: []string{"use-regex: true"}, effects: []effect{to("/b", "404")}},
	"away":     {annotations: []string{"rewrite-target: https://away.test/"}, elsewhere: true, effects: []effect{to("/a", "302 https://away.test/")}},
	"redirect": {annotations: []string{"permanent-redirect: https://away.test/"}, elsewhere: true, effects: []effect{to("/a", "301 https://away.test/")}},
	"app-root": {annotations: []string{"app-root: /app"}, effects: []effect{to("/", "302 http://HOST/app")}},
	"bare": {annotations: []string{"from-to-www-redirect: true"},
		effects: []effect{{Request: headgatetest.Request{Path: "/a"}, at: "www.", want: "308 http://HOST/a"}}},
	// It answers before any guard. The host that it leads to, which is asked
	// for the bypass bare, guards what follows.
	"www-alias": {annotations: []string{"from-to-www-redirect: true"}, asked: "www.", elsewhere: true,
		effects: []effect{to("/a?b=c", "308 http://HOST/a?b=c")}},
	"alias":      {annotations: []string{"server-alias: alias.HOST"}, asked: "alias.", effects: []effect{to("/a", "app /a")}},
	"regexalias": {annotations: []string{"server-alias: ~^x[0-9]+\\.HOST$"}, asked: "x1.", effects: []effect{to("/a", "app /a")}},
	"wildcard":   {under: "*.", asked: "any.", effects: []effect{to("/a", "app /a")}},
	"tls":        {secured: true, effects: []effect{to("/a", "308 https://HOST/a")}},
	"no-tls": {secured: true, annotations: []string{"ssl-redirect: false", "force-ssl-redirect: false"},
		effects: []effect{{Request: headgatetest.Request{Path: "/a"}, want: "app /a", unlike: "tls"}}},
	"profile": {annotations: []string{"proxy-body-size: 3k"},
		effects: []effect{{Request: headgatetest.Request{Method: "POST", Path: "/a", Body: strings.NewReader(strings.Repeat("x", 4<<10))}, want: "413"}}},
	"stream": {annotations: []string{"proxy-request-buffering: off", "proxy-buffering: on"},
		effects: []effect{{Request: headgatetest.Request{Method: "POST", Path: "/a", Body: unsized{strings.NewReader(strings.Repeat("x", 64<<10))}}, want: "app /a chunked"}}},
	"fallback": {service: "silent", annotations: []string{"default-backend: next"}, effects: []effect{to("/a", "next /a")}},
	// The page has the status of the error.
	"errors": {annotations: []string{"custom-http-errors: 400,401,403,404,413,500,502,503", "default-backend: page", "proxy-body-size: 3k"},
		effects: []effect{{Request: headgatetest.Request{Method: "POST", Path: "/a", Body: strings.NewReader(strings.Repeat("x", 4<<10))}, want: "413 /page"}}},
	"canary":    {beside: canary("canary-weight: 100"), effects: []effect{to("/a", "next /a")}},
	"by-header": {beside: canary("canary-by-header: X-New"), effects: []effect{sent("X-New", "always", "next /a")}},
	"by-cookie": {beside: canary("canary-by-cookie: X-New"), effects: []effect{sent("Cookie", "X-New=always", "next /a")}},
	"regex-next": {beside: func(host string, guard []string) string {
		global := slices.DeleteFunc(slices.Clone(guard), func(a string) bool { return a != notGlobal })
		return headgatetest.Ingress("next-"+host, host, "/next/(.*)", "next", append(global, "rewrite-target: /$1")...)
	}, door: regexp.MustCompile(`(?i)^/next/`), effects: []effect{to("/next/a", "next /a"), to("/NEXT/A", "next /A")}},
	"acme": {beside: again(challenges), door: regexp.MustCompile(`^/\.well-known/acme-challenge(/|$)`), exempt: true,
		effects: []effect{to(challenges+"/x", "next "+challenges+"/x")}},
	// As an expression it is met in any case, and goes on in any way.
	"acme-regex": {beside: again(challenges, "use-regex: true", "rewrite-target: /else"), exempt: true,
		door: regexp.MustCompile(`(?i)^/.well-known/acme-challenge`), effects: []effect{to(challenges+"/x", "next /else")}},
	// One that goes on as an expression is guarded.
	"acme-groups": {beside: again(challenges+"/(.*)", "use-regex: true", "rewrite-target: /$1"), effects: []effect{to(challenges+"/x", "next /x")}},
	"cors": {annotations: []string{"enable-cors: true"}, effects: []effect{sent("Origin", "https://a.test", "app /a, for *"), {
		Request: headgatetest.Request{Method: "OPTIONS", Path: "/a", Header: http.Header{"Origin": {"https://a.test"}}}, want: "204, for *",
	}}},
}

// sent is the effect that a request with a header ends so.
func sent(header, value, want string) effect {
	return effect{Request: headgatetest.Request{Path: "/a", Header: http.Header{header: {value}}}, want: want}
}

// An unsized body is sent without a length.
type unsized struct{ *strings.Reader }

// canary is a canary that nothing guards beside a guarded Ingress.
func canary(when string) func(string, []string) string {
	return func(host string, _ []string) string {
		return headgatetest.Ingress("canary-"+host, host, "/", "next", "canary: true", when)
	}
}

// again is another path with the same guard.
func again(path string, annotations ...string) func(string, []string) string {
	return func(host string, guard []string) string {
		return headgatetest.Ingress("again-"+host, host, path, "next", slices.Concat(guard, annotations)...)
	}
}

// ways are requests.
var ways = []headgatetest.Request{
	{Path: "/"}, {Path: "/a/b?c=d"}, {Path: "//a"}, {Path: "/%2e%2e/a"}, {Path: "/a/../b"}, {Path: "/A%2FB"}, {Path: "/a;b"}, {Path: "/app"},
	{Path: "/", Method: "POST", Body: strings.NewReader("x")}, {Path: "/", Method: "HEAD"}, {Path: "/x", Method: "PROPFIND"},
	{Path: "/", Method: "OPTIONS", Header: http.Header{"Origin": {"https://a.test"}, "Access-Control-Request-Method": {"GET"}}},
	{Path: "/", Header: http.Header{"X-New": {"always"}, "Cookie": {"X-New=always"}}},
	{Path: "/next/x"}, {Path: "/NEXT/X"}, {Path: "/next/../a"}, {Path: "/a/../next/x"}, {Path: "/next"},
	{Path: challenges}, {Path: challenges + "/x"}, {Path: "/a/.." + challenges + "/x"}, {Path: "/.WELL-KNOWN/acme-challenge/x"},
	{Path: challenges + "-x"}, {Path: challenges + "/../../a"}, {Path: challenges + "/%2e%2e/%2e%2e/a"}, {Path: "/a" + challenges + "/"},
	{Path: "/x", Header: http.Header{"X-Original-Url": {challenges + "/x"}, "X-Rewrite-Url": {challenges + "/x"}}},
}

// leads reports whether a request for a path goes through a bypass's door.
func (b bypass) leads(requested string) bool {
	if b.door == nil {
		return false
	}
	requested, _, _ = strings.Cut(requested, "?")
	decoded, err := url.PathUnescape(requested)
	if err != nil {
		return false
	}
	clean := path.Clean(decoded)
	if strings.HasSuffix(decoded, "/") && clean != "/" {
		clean += "/"
	}
	return b.door.MatchString(clean)
}
