package dataplane_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A keyCase is a change of a ConfigMap key, and what a client sees of it. Words
// in capitals stand for addresses: see startKeyFixture.
type keyCase struct {
	key, before, after string // "-" is without the key
	beside             []string
	// annotations of the Ingress for path, "/" if empty, of a.test.
	service, path string
	annotations   []string

	request headgatetest.Request
	body    int // bytes
	chunked bool
	see     func(*keyFixture, *keyVisit) string
	was, is string
	reloads int
	// slow cases don't look what a change back does.
	slow bool
}

var basicAuth = []string{"auth-type: basic", "auth-secret: users"}

var tenancyKeys = []keyCase{
	{
		key: "annotations-risk-level", before: "-", after: "Low",
		service: "echo", annotations: []string{"permanent-redirect: https://b.test/"}, see: status, was: "301", is: "503",
	},
	{
		key: "annotations-risk-level", before: "Medium", after: "High",
		service: "echo", annotations: []string{"auth-url: http://AUTH/status/401"}, see: status, was: "503", is: "401",
	},
	{
		key: "annotation-value-word-blocklist", before: "-", after: "a.test,b.test",
		service: "echo", annotations: []string{"permanent-redirect: https://b.test/"}, see: status, was: "301", is: "503",
	},
	{
		key: "annotation-value-word-blocklist", before: "other,user", after: "other",
		service: "echo", annotations: basicAuth, request: headgatetest.Request{Header: password}, see: status, was: "503", is: "200",
	},
	{
		key: "allow-cross-namespace-resources", before: "-", after: "true",
		service: "echo", annotations: []string{"auth-type: basic", "auth-secret: other/users"}, request: headgatetest.Request{Header: password},
		see: status, was: "503", is: "200",
	},
	{
		key: "no-auth-locations", before: "-", after: "/open",
		service: "echo", path: "/open", annotations: basicAuth, request: headgatetest.Request{Path: "/open/x"}, see: status, was: "401", is: "200",
	},
	{key: "whitelist-source-range", before: "-", after: "10.0.0.0/8", service: "echo", see: status, was: "200", is: "403"},
	{key: "denylist-source-range", before: "-", after: "127.0.0.0/8", service: "echo", see: status, was: "200", is: "403"},
	{key: "block-cidrs", before: "-", after: "127.0.0.0/8", service: "echo", see: status, was: "200", is: "403"},
	{key: "custom-http-errors", before: "404", after: "404,503", service: "missing", see: status, was: "503", is: "404", reloads: 1},
	{
		key: "disable-proxy-intercept-errors", before: "-", after: "true", beside: []string{"custom-http-errors: 503"},
		service: "play", request: headgatetest.Request{Path: "/503"}, see: status, was: "404", is: "503", reloads: 1,
	},
	{
		key: "enable-modsecurity", before: "-", after: "true", beside: []string{"modsecurity-snippet: " + refusesAll},
		service: "echo", see: status, was: "200", is: "403", reloads: 1,
	},
	{
		key: "modsecurity-snippet", before: "SecRuleEngine DetectionOnly", after: refusesAll, beside: []string{"enable-modsecurity: true"},
		service: "echo", see: status, was: "200", is: "403", reloads: 1,
	},
	{
		key: "enable-owasp-modsecurity-crs", before: "-", after: "true", beside: []string{"enable-modsecurity: true", "modsecurity-snippet: SecRuleEngine On"},
		service: "echo", request: headgatetest.Request{Path: "/?x=<script>alert(1)</script>"}, see: status, was: "200", is: "403", reloads: 1,
	},
	{
		key: "main-snippet", before: "-", after: "env HG_TEST=1;",
		beside:  []string{"server-snippet: set_by_lua_block $hg_test { return os.getenv('HG_TEST') or '' } if ($hg_test) { return 403; }"},
		service: "echo", see: status, was: "200", is: "403", reloads: 1,
	},
	{key: "http-snippet", before: "-", after: "deny all;", service: "echo", see: status, was: "200", is: "403", reloads: 1},
	{key: "server-snippet", before: "gzip on;", after: "deny all;", service: "echo", see: status, was: "200", is: "403", reloads: 1},
	{key: "location-snippet", before: "-", after: "deny all;", service: "echo", see: status, was: "200", is: "403", reloads: 1},
	{
		key: "allow-snippet-annotations", before: "-", after: "true", beside: []string{"annotations-risk-level: Critical"},
		service: "echo", annotations: []string{"configuration-snippet: return 403;"}, see: status, was: "200", is: "403", reloads: 1,
	},
	{key: "block-user-agents", before: "-", after: "~*go-http-client", service: "echo", see: status, was: "200", is: "403"},
	{
		key: "block-referers", before: "-", after: "http://unwanted.test/", service: "echo",
		request: headgatetest.Request{Header: http.Header{"Referer": {"http://unwanted.test/"}}}, see: status, was: "200", is: "403",
	},
}

// refusesAll are rules of ModSecurity.
const refusesAll = "SecRuleEngine On\nSecAction \"id:1,phase:1,deny,status:403\""

var answerKeys = []keyCase{
	{
		key: "relative-redirects", before: "-", after: "true",
		service: "echo", path: "/dir/", request: headgatetest.Request{Path: "/dir"}, see: header("Location"), was: "301 SCHEME://a.test/dir/", is: "301 /dir/",
	},
	{
		key: "proxy-redirect-from", before: "http://other.local/", after: "http://internal.local/", beside: []string{"proxy-redirect-to: https://public.example/"},
		service: "play", request: headgatetest.Request{Header: http.Header{"Say-Location": {"http://internal.local/x"}}},
		see: header("Location"), was: "302 http://internal.local/x", is: "302 https://public.example/x",
	},
	{
		key: "proxy-redirect-to", before: "-", after: "https://public.example/", beside: []string{"proxy-redirect-from: http://internal.local/"},
		service: "play", request: headgatetest.Request{Header: http.Header{"Say-Location": {"http://internal.local/x"}}},
		see: header("Location"), was: "302 http://internal.local/x", is: "302 https://public.example/x",
	},
	{
		key: "proxy-cookie-domain", before: "-", after: "inner.local outer.example",
		service: "play", request: headgatetest.Request{Header: http.Header{"Say-Set-Cookie": {"a=1; Domain=inner.local"}}},
		see: header("Set-Cookie"), was: "200 a=1; Domain=inner.local", is: "200 a=1; Domain=outer.example",
	},
	{
		key: "proxy-cookie-path", before: "/in /there", after: "/in /out",
		service: "play", request: headgatetest.Request{Header: http.Header{"Say-Set-Cookie": {"a=1; Path=/in/x"}}},
		see: header("Set-Cookie"), was: "200 a=1; Path=/there/x", is: "200 a=1; Path=/out/x",
	},
	{
		key: "global-allowed-response-headers", before: "X-Other", after: "X-Other,X-Custom",
		service: "echo", annotations: []string{"custom-headers: default/headers"}, see: header("X-Custom"), was: "503 ", is: "200 one",
	},
	{key: "add-headers", before: "-", after: "default/headers", service: "echo", see: header("X-Custom"), was: "200 ", is: "200 one", reloads: 1},
	{key: "proxy-set-headers", before: "-", after: "default/headers", service: "echo", see: received("X-Custom"), was: "", is: "one"},
	{key: "proxy-set-headers", before: "default/headers", after: "default/missing", service: "echo", see: status, was: "200", is: "503"},
}

// asksAuthService is a key by which the service of the cases is asked, and lets pass.
const asksAuthService = "global-auth-url: http://AUTH/check"

var authKeys = []keyCase{
	{key: "global-auth-url", before: "-", after: "http://AUTH/status/403", service: "echo", see: status, was: "200", is: "403"},
	{
		key: "global-auth-method", before: "-", after: "POST", beside: []string{asksAuthService, "global-auth-response-headers: X-Method"},
		service: "echo", see: received("X-Method"), was: "GET", is: "POST",
	},
	{
		key: "global-auth-response-headers", before: "X-Other", after: "X-Method", beside: []string{asksAuthService},
		service: "echo", see: received("X-Method"), was: "", is: "GET",
	},
	{
		key: "global-auth-request-redirect", before: "-", after: "https://app.example/back", beside: []string{asksAuthService, "global-auth-response-headers: X-Redirect"},
		service: "echo", request: headgatetest.Request{Path: "/x"}, see: received("X-Redirect"), was: "/x", is: "https://app.example/back",
	},
	{
		key: "global-auth-signin", before: "-", after: "https://login.example/", beside: []string{"global-auth-url: http://AUTH/status/401"},
		service: "echo", see: header("Location"), was: "401 ", is: "302 https://login.example/?rd=SCHEME://a.test%2F",
	},
	{
		key: "global-auth-signin-redirect-param", before: "-", after: "next",
		beside:  []string{"global-auth-url: http://AUTH/status/401", "global-auth-signin: https://login.example/"},
		service: "echo", see: header("Location"),
		was: "302 https://login.example/?rd=SCHEME://a.test%2F", is: "302 https://login.example/?next=SCHEME://a.test%2F",
	},
	{
		key: "global-auth-cache-key", before: "-", after: "$http_x_mark",
		beside:  []string{asksAuthService, "global-auth-cache-duration: 200 5m", "global-auth-response-headers: X-Count"},
		service: "echo", see: sameTwice("X-Count"), was: "two answers", is: "one answer",
	},
	{
		key: "global-auth-cache-duration", before: "403 5m", after: "200 5m",
		beside:  []string{asksAuthService, "global-auth-cache-key: $http_x_mark", "global-auth-response-headers: X-Count"},
		service: "echo", see: sameTwice("X-Count"), was: "two answers", is: "one answer",
	},
	{key: "global-auth-snippet", before: "-", after: "if ($request_uri ~ ^/) { return 403; }", beside: []string{asksAuthService}, service: "echo", see: status, was: "200", is: "403"},
	{
		key: "global-auth-always-set-cookie", before: "-", after: "true", beside: []string{"global-auth-url: http://AUTH/cookie"},
		service: "play", request: headgatetest.Request{Path: "/404"}, see: header("Set-Cookie"), was: "404 ", is: "404 auth=1",
	},
	{
		key: "global-auth-pass-response", before: "-", after: "true", beside: []string{"global-auth-url: http://AUTH/status/403"},
		service: "echo", see: header("X-Method"), was: "403 ", is: "403 GET",
	},
}

// elsewhere are the features whose keys are changed live by tests of their own.
var elsewhere = map[string]string{
	"client_location":  "TestVariables, TestDatabasesChange and TestRereads of internal/feature/geoip: they need databases",
	"process":          "TestClientConnections, TestBackendConnections and TestConfigMapChangesLive of internal/feature/process: most say how connections live and end",
	"client_address":   "TestChangesLive and TestHeadersChangeLive of internal/feature/clientaddress: a client without the PROXY header has no answer",
	"error_messages":   "TestPathAndLevel and TestSyslog of internal/feature/errorlog: they are seen in logs, not in answers",
	"request_log":      "TestKeysChangeLive of internal/feature/accesslog: they are seen in the log, not in answers",
	"handshake":        "tlspolicy_test.go, tlssession_test.go and TestTicketKeys of internal/feature/handshake: they are seen in handshakes, not in answers",
	"known_requests":   "TestRequestHeaders of internal/feature/requestheaders: IDs are random",
	"stapling":         "TestStapling: it is seen in handshakes, once an authority was asked",
	"https_redirect":   "TestConfigMapChangesLive of internal/feature/httpsredirect changes all of them",
	"http3":            "TestReload of internal/feature/http3: not every NGINX has it",
	"balancing":        "TestKey: only many requests show an algorithm",
	"ejection":         "TestOff and TestKeys: they are seen in many requests and in the state",
	"health_check":     "TestSettingsChangeLive of internal/feature/healthcheck: they are seen in checks, not in answers",
	"tcp_udp":          "TestProgram (checkStreamKeys), and TestIdle, TestDeadEndpoint and TestResponses of internal/stream: they are seen in TCP and UDP, not in answers",
	"rate_limit":       "TestKeys and TestWindowIsChangedLive of internal/feature/ratelimit: they are seen in several requests, and in the time of a response",
	"opentelemetry":    "TestSamplers and TestKeysChangeLive of internal/feature/opentelemetry: they are seen in spans; the exporter's keys are tested where spans are exported",
	"listen":           "TestAddressesChangeLive of internal/feature/listen: connections show them, not answers",
	"worker_process":   "TestWorkersChangeLive, TestConnections and TestDebugConnections of internal/feature/worker: the kernel and the log show them; enable-multi-accept shows nowhere",
	"status_page":      "TestClients of internal/feature/nginxstatus: who connects must be in the list too",
	"hash_size":        "TestGolden of internal/plan: only lines of an administrator can need them",
	"ineffective":      "they have no effect",
	"service_upstream": "TestServiceUpstream: it needs Services with addresses",
}

// alone are the keys that are changed live by tests of their own, though other keys of
// their section are not.
var alone = map[string]string{
	"use-http2":              "TestConfigMapChangesLive of internal/feature/process: it is seen in handshakes, not in answers",
	"http2-max-field-size":   "it has no effect",
	"http2-max-header-size":  "it has no effect",
	"http2-max-requests":     "it has no effect",
	"enable-auth-access-log": "TestLog of internal/feature/externalauth: it is seen in the access log, not in answers",

	"auth-url-ca":    "TestServiceIsVerified of internal/feature/externalauth: it needs certificates",
	"host-ownership": "TestHostOwnership: it needs two namespaces",

	"global-allowed-fastcgi-params": "TestAllowedParameters of internal/feature/backendprotocol: it needs a FastCGI backend",
	"grpc-buffer-size-kb":           "TestBuffer of internal/feature/backendprotocol: it needs a gRPC backend",
	"strict-validate-path-type":     "TestGolden of internal/admission/review: the admission webhook alone reads it",
	"use-app-protocol":              "TestAppProtocol of internal/feature/backendprotocol: it needs a Service with an appProtocol",
	"proxy-ssl-location-only":       "TestShared of internal/feature/backendprotocol: it needs certificates",
}

// hidden are the keys that change no answer.
var hidden = map[string]string{
	"client-header-buffer-size": "what does not fit gets a large buffer; the case looks at nginx.conf",
	"gzip-level":                "a level is seen in the size of long texts alone; the case looks at nginx.conf",
	"brotli-level":              "as gzip-level",
	"proxy-buffers-number":      "what it keeps off the disk, the kernel's own buffers keep too; the case looks at nginx.conf",
	"proxy-busy-buffers-size":   "it says how much of an answer NGINX sends at once, and the kernel hides that; the case looks at nginx.conf",
}

func keyCases() []keyCase {
	return slices.Concat(tenancyKeys, answerKeys, authKeys, bodyKeys, answerBufferKeys, tryKeys, coreKeys, compressionKeys)
}

// A change of the ConfigMap, with any defaults of a route, is seen by the next
// request, and makes as many reloads as are due: none, or one for what only
// nginx.conf can say.
func TestKeysChangeLive(t *testing.T) {
	t.Parallel()
	b := startKeyFixture(t)
	for _, c := range keyCases() {
		t.Run(fmt.Sprintf("%s: %s", c.key, c.after), func(t *testing.T) {
			t.Parallel()
			b.check(t, c)
		})
	}
}

// TestEveryKeyIsChangedLive: no key is forgotten there.
func TestEveryKeyIsChangedLive(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{}
	for _, c := range keyCases() {
		if cases[c.key] = true; c.was == c.is {
			t.Errorf("%s: %s: the case shows nothing", c.key, c.after)
		}
	}
	known := map[string]bool{}
	want := func(settings []feature.AnySetting, whose string) {
		for _, s := range settings {
			key := s.Spec().Key
			if known[key] = true; key != "" && elsewhere[whose] == "" && alone[key] == "" && !cases[key] {
				t.Errorf("%s: no case changes the key %s", whose, key)
			}
			if elsewhere[whose] != "" && cases[key] {
				t.Errorf("%s: the key %s has a case, and its feature is said to be tested elsewhere", whose, key)
			}
		}
	}
	want(feature.Tenancy(), "tenancy")
	features := map[string]bool{}
	for _, f := range all.Features() {
		features[f.Name] = true
		want(f.Settings, f.Name)
	}
	for name := range elsewhere {
		if !features[name] {
			t.Errorf("there is no feature %s to be tested elsewhere", name)
		}
	}
	for _, c := range keyCases() {
		if !known[c.key] {
			t.Errorf("there is no key %s to be changed", c.key)
		}
	}
	for key := range hidden {
		if !cases[key] {
			t.Errorf("there is no case of %s, which changes no answer", key)
		}
	}
}
