package clientheader_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// claims are headers by which a client says who it is, in names that only look like those of
// Headgate and of the administrator.
func claims() http.Header {
	claimed := http.Header{}
	for _, name := range []string{
		"X_Forwarded_For", "X-Forwarded_For", "X_Forwarded_Proto", "X_Forwarded_Host", "X_Forwarded_Port", "X_Forwarded_Scheme", "X_Forwarded_Prefix", "X_Real_Ip", "X_Scheme",
		"X_Original_Forwarded_For", "X_Original_Uri", "X_Request_Id", "Ssl_Client_Verify", "Ssl-Client_Cert", "Ssl_Client_Subject_Dn", "X_Headgate_Checks", "X_Auth_Request_Redirect",
		"Transfer_Encoding", "Content_Length", "Proxy_Authorization", "X_Auth_User", "X-Auth_User", "X_Custom", "X_Client_Ip",
	} {
		claimed[name] = []string{"198.51.100.7"}
	}
	return claimed
}

// believed returns the claims that a server got, which reads hyphens and underscores as the same.
func believed(got http.Header) (names []string) {
	wanted := map[string]bool{}
	for name := range claims() {
		wanted[strings.ReplaceAll(strings.ToLower(name), "_", "-")] = true
	}
	for name, values := range got {
		if wanted[strings.ReplaceAll(strings.ToLower(name), "_", "-")] && strings.Contains(strings.Join(values, ","), "198.51.100.7") {
			names = append(names, name)
		}
	}
	return names
}

// No client says by a header with underscores what it can't say with hyphens. Other such
// headers are passed on.
func TestLookalikes(t *testing.T) {
	t.Parallel()
	toAuth := make(chan http.Header, 1)
	auth := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-toAuth:
		default:
		}
		toAuth <- r.Header
	}))
	manifests := headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.ConfigMap("headers", "X-Custom: one") +
		headgatetest.Ingress("web", "a.test", "/", "a") +
		// The service does not say who the client is, so no client may.
		headgatetest.Ingress("guarded", "a.test", "/guarded", "a", "auth-url: http://"+auth+"/", "auth-response-headers: X-Auth-User") +
		headgatetest.Ingress("missing", "a.test", "/missing", "none", "default-backend: a") + headgatetest.Service("none")
	for _, keys := range [][]string{
		{"enable-underscores-in-headers: true"}, {"ignore-invalid-headers: false"},
		{"enable-underscores-in-headers: true", "forwarded-for-header: X-Client-IP", "enable-real-ip: true"},
		{"enable-underscores-in-headers: true", "use-forwarded-headers: true", "proxy-real-ip-cidr: 127.0.0.1/32", "compute-full-forwarded-for: true"},
	} {
		g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: manifests + headgatetest.Config(append(keys, "proxy-set-headers: default/headers", "use-http3: true")...)})
		for _, by := range g.Protocols() {
			for _, path := range []string{"/", "/guarded", "/missing"} {
				header := claims()
				header["X_under"] = []string{"1"}
				r := g.Do(asked(by, path, header))
				if r.WantStatus(t, 200); r.Echo == nil {
					t.Fatal("no backend answers")
				}
				got := map[string]string{}
				for name := range r.Echo.Header {
					got[strings.ToLower(name)] = r.Echo.Header[name][0]
				}
				names := believed(r.Echo.Header)
				if path != "/guarded" {
					names = without(names, "x-auth-user")
				}
				if !strings.Contains(strings.Join(keys, ","), "X-Client-IP") {
					names = without(names, "x-client-ip")
				}
				if len(names) > 0 {
					t.Errorf("%v, %s by %s: the backend gets %v", keys, path, protocol(by), names)
				}
				if got["x_under"] != "1" {
					t.Errorf("%v, %s by %s: the backend does not get X_Under", keys, path, protocol(by))
				}
				if got["x-real-ip"] != "127.0.0.1" || got["x-forwarded-proto"] != by.Scheme {
					t.Errorf("%v, %s by %s: the backend gets the client %s by %s", keys, path, protocol(by), got["x-real-ip"], got["x-forwarded-proto"])
				}
				if path == "/guarded" {
					if names := without(believed(<-toAuth), "x-auth-user", "x-client-ip"); len(names) > 0 {
						t.Errorf("%v by %s: the auth service gets %v", keys, protocol(by), names)
					}
				}
			}
		}
	}
}

// asked is a request for a path by a protocol.
func asked(by headgatetest.Request, path string, header http.Header) headgatetest.Request {
	by.Host, by.Path, by.Header = "a.test", path, header
	return by
}

func protocol(by headgatetest.Request) string {
	switch {
	case by.HTTP3:
		return "HTTP/3"
	case by.HTTP2:
		return "HTTP/2"
	}
	return by.Scheme
}

// without removes names, in any case and with any hyphens, from a list.
func without(names []string, removed ...string) (kept []string) {
	for _, name := range names {
		same := false
		for _, r := range removed {
			same = same || strings.ReplaceAll(strings.ToLower(name), "_", "-") == r
		}
		if !same {
			kept = append(kept, name)
		}
	}
	return kept
}

// Without the keys, no header with an underscore is passed on.
func TestOtherNamesAreIgnored(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.Ingress("web", "a.test", "/", "a") + headgatetest.Config("use-http3: true")})
	for _, by := range g.Protocols() {
		header := claims()
		header["X.dot"] = []string{"1"}
		r := g.Do(asked(by, "/", header))
		for name := range r.WantStatus(t, 200).Echo.Header {
			if strings.ContainsAny(name, "_.") {
				t.Errorf("by %s: the backend gets %s", protocol(by), name)
			}
		}
	}
}
