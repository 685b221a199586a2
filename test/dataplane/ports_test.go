package dataplane_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// askPort asks for a path at an address.
func askPort(t *testing.T, method, address, path string) headgatetest.Response {
	t.Helper()
	request, err := http.NewRequest(method, "http://"+address+path, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: headgatetest.Timeout}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text := make([]byte, 1000)
	n, _ := response.Body.Read(text)
	return headgatetest.Response{Status: response.StatusCode, Header: response.Header, Body: string(text[:n])}
}

// The port of the default server answers 404, and that of the status is for this machine. Neither
// has to do with the header of the PROXY protocol.
func TestMorePorts(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{MorePorts: true, Timing: headgatetest.Hasty(), Manifests: served("a", startWire(t, "X-Wire: a\r\n").address) +
		ruled("hostless", " Prefix / a")})
	check := func() {
		t.Helper()
		for _, path := range []string{"/", "/healthz", "/nginx_status", "/a/b?c=d"} {
			for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
				r := askPort(t, http.MethodPost, fmt.Sprintf("%s:%d", host, g.DefaultServer), path).WantStatus(t, 404)
				if len(r.Body) != 146 || r.Header.Get("Server") != "" {
					t.Errorf("the default server answers %s with %v %q", path, r.Header, r.Body)
				}
			}
		}
		status := headgatetest.Address(g.Status)
		for path, want := range map[string]int{"/healthz": 200, "/is-dynamic-lb-initialized": 200, "/nginx_status": 200, "/": 404, "/healthzx": 404, "/configuration/backends": 404} {
			r := askPort(t, http.MethodGet, status, path).WantStatus(t, want)
			if path == "/nginx_status" && !strings.HasPrefix(r.Body, "Active connections: ") {
				t.Errorf("the status is %q", r.Body)
			}
		}
	}
	check()
	if connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.2:%d", g.Status)); err == nil {
		connection.Close()
		t.Error("the status port is open at other addresses than 127.0.0.1")
	}
	g.ApplyReloading(headgatetest.Config("use-proxy-protocol: true"))
	check()
}

// Before all was pushed once, NGINX has no backends.
func TestNotInitialized(t *testing.T) {
	t.Parallel()
	g := headgatetest.StartBare(t, headgatetest.Options{MorePorts: true})
	askPort(t, http.MethodGet, headgatetest.Address(g.Status), "/healthz").WantStatus(t, 200)
	askPort(t, http.MethodGet, headgatetest.Address(g.Status), "/is-dynamic-lb-initialized").WantStatus(t, 500)
}

// A port that is taken ends the start, and the error names its flag. Other ports than those of
// the flags are not opened.
func checkPorts(t *testing.T, binary string) {
	for _, flag := range []string{"http-port", "healthz-port", "default-server-port", "status-port"} {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		p := startProgram(t, binary, "", fmt.Sprintf("--%s=%d", flag, port))
		p.open(true)
		<-p.ended
		if want := fmt.Sprintf(":%d is in use by ", port); p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.log.String(), "--"+flag+": ") || !strings.Contains(p.log.String(), want) {
			t.Errorf("with a --%s that is taken: %v\n%s", flag, p.cmd.ProcessState, p.log)
		}
	}
	p := startProgram(t, binary, "", "--default-server-port=0", "--status-port=0")
	p.open(true)
	p.wantHealth("without ports", 200, "ok")
	conf, err := os.ReadFile(filepath.Join(p.dir, "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(conf)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "listen ") && !strings.Contains(line, fmt.Sprintf(":%d ", p.http)) &&
			!strings.Contains(line, fmt.Sprintf(":%d ", p.https)) && !strings.HasPrefix(line, "listen unix:") {
			t.Errorf("without the ports, nginx.conf has %q", line)
		}
	}
}
