package dataplane_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// An earlyClient sends data before its handshake is over, which Go's TLS does not.
type earlyClient struct {
	t    *testing.T
	port uint16
	dir  string
	// flags are those of every connection.
	flags []string
}

// send sends a request to a host, by the session of an earlier connection if early is set, and returns
// what openssl says and the answer.
func (c earlyClient) send(host, request string, early bool) string {
	c.t.Helper()
	session, data := filepath.Join(c.dir, host), filepath.Join(c.dir, "request")
	if err := os.WriteFile(data, []byte(request), 0o600); err != nil {
		c.t.Fatal(err)
	}
	args := append([]string{"s_client", "-connect", headgatetest.Address(c.port), "-servername", host, "-tls1_3", "-ign_eof"}, c.flags...)
	cmd := exec.Command("openssl")
	if early {
		args = append(args, "-sess_in", session, "-early_data", data)
	} else {
		args = append(args, "-sess_out", session)
		cmd.Stdin = strings.NewReader(request)
	}
	cmd.Args = append(cmd.Args, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("openssl: %v\n%s", err, out.String())
	}
	return out.String()
}

// request is one after which the connection ends.
func (c earlyClient) request(method, host string) string {
	return fmt.Sprintf("%s / HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nConnection: close\r\n"+
		"Authorization: %s\r\nX-Token: ok\r\n\r\n", method, host, password.Get("Authorization"))
}

// TestEarlyDataOfGuardedHosts sends requests by guarded paths before handshakes are over. One that may change
// something is answered 425, since it may be a replay of one that passed the guard.
func TestEarlyDataOfGuardedHosts(t *testing.T) {
	t.Parallel()
	pair := headgatetest.NewKeyPair(t, "client")
	guarded := map[string][]string{
		"basic": users, "url": {"auth-url: http://ADDRESS/check"}, "allow": {"allowlist-source-range: 127.0.0.1"},
		"any": either, "certificate": {"auth-tls-secret: default/authorities"},
	}
	manifests := served("one", headgatetest.StartEcho(t, "one")) + guardSecrets(pair) +
		headgatetest.Config("ssl-early-data: true", "ssl-session-tickets: true") + headgatetest.Ingress("open", "open.test", "/", "one")
	service := headgatetest.StartEcho(t, "service")
	for name, annotations := range guarded {
		manifests += bypass{service: "one"}.ingresses(name+".test", service, annotations)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	c := earlyClient{t: t, port: g.HTTPS, dir: t.TempDir()}
	certificate := filepath.Join(c.dir, "certificate.pem")
	if err := os.WriteFile(certificate, []byte(pair.Certificate+pair.Key), 0o600); err != nil {
		t.Fatal(err)
	}
	c.flags = []string{"-cert", certificate}

	const early = `"Early-Data":["1"]`
	for _, host := range []string{"open.test", "basic.test", "url.test", "allow.test", "any.test", "certificate.test"} {
		for _, method := range []string{"GET", "POST"} {
			refused := method == "POST" && host != "open.test"
			request := c.request(method, host)
			// Where the handshake is over before NGINX reads the request, it is not a replay.
			headgatetest.Eventually(t, method+" "+host+": the request is early", func() bool {
				if out := c.send(host, request, false); strings.Contains(out, early) || !strings.Contains(out, "HTTP/1.1 200") {
					t.Fatalf("%s %s: a request that is not early: %s", method, host, out)
				}
				out := c.send(host, request, true)
				if refused && strings.Contains(out, early) {
					t.Fatalf("%s %s: an early request reached the backend: %s", method, host, out)
				}
				if !strings.Contains(out, "Early data was accepted") {
					return false
				}
				return refused && strings.Contains(out, "HTTP/1.1 425") || !refused && strings.Contains(out, early)
			})
		}
	}
}
