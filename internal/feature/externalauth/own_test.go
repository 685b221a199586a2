package externalauth_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Finding B3: a service that a host asks by its own name sees the client, not NGINX; and
// no client can say that it is another one.
func TestOwnHostSeesTheClient(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	manifests := app(t) + headgatetest.Service("auth") + headgatetest.Endpoints("auth", j.at)
	for _, scheme := range []string{"http", "https"} {
		manifests += headgatetest.Ingress(scheme, scheme+".test", "/", "app", "auth-url: "+scheme+"://$host/check", "ssl-redirect: false") +
			ownAuthService(scheme+"-sso", scheme+".test", "/check", "ssl-redirect: false")
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	const client = "127.0.0.9"
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, through := range []string{"http", "https"} {
			dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
			transport := &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: http2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			defer transport.CloseIdleConnections()
			port := g.HTTP
			if scheme == "https" {
				port = g.HTTPS
			}
			request, err := http.NewRequest("GET", fmt.Sprintf("%s://%s/x", scheme, headgatetest.Address(port)), nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = through + ".test"
			request.Header = http.Header{"X-Real-Ip": {"10.1.1.1"}, "X-Forwarded-For": {"10.1.1.2"}}
			response, err := (&http.Client{Transport: transport}).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != 200 {
				t.Errorf("%s by %s: status %d", response.Proto, through, response.StatusCode)
			}
			seen := j.last(t).Header
			if ip, forwarded := seen.Get("X-Real-Ip"), seen.Get("X-Forwarded-For"); ip != client || forwarded != client {
				t.Errorf("%s by %s: the service got X-Real-IP %s, X-Forwarded-For %s", response.Proto, through, ip, forwarded)
			}
			want := map[string]string{"http": fmt.Sprint(g.HTTP), "https": "443"}[through]
			if port := seen.Get("X-Forwarded-Port"); port != want {
				t.Errorf("%s by %s: the service got X-Forwarded-Port %s, want %s", response.Proto, through, port, want)
			}
		}
	})
}
