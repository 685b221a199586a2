package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// Profiles are served on their own port, and nowhere else.
func checkProfiles(t *testing.T, binary string) {
	t.Parallel()
	port := porttest.Free(t)
	p := startProgram(t, binary, "", "--profiling", fmt.Sprintf("--profiler-port=%d", port))
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	for address, want := range map[string]int{
		headgatetest.Address(port) + "/debug/pprof/":                  http.StatusOK,
		headgatetest.Address(port) + "/debug/pprof/goroutine?debug=1": http.StatusOK,
		headgatetest.Address(port) + "/metrics":                       http.StatusNotFound,
		headgatetest.Address(p.healthz) + "/debug/pprof/":             http.StatusNotFound,
		headgatetest.Address(p.http) + "/debug/pprof/":                http.StatusNotFound,
	} {
		if status, body := fetch(t, "http://"+address); status != want || want == http.StatusOK && !strings.Contains(body, "goroutine") {
			t.Errorf("%s: status %d, want %d: %.200s", address, status, want, body)
		}
	}

	// A second one does not start on the same port.
	second := startProgram(t, binary, "", "--profiling", fmt.Sprintf("--profiler-port=%d", port))
	<-second.ended
	want := fmt.Sprintf("headgate: --profiler-port: 127.0.0.1:%d is in use by headgate (process %d); set another port or --profiling=false", port, p.cmd.Process.Pid)
	if !strings.Contains(second.log.String(), want) || second.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %s, without %q:\n%s", second.cmd.ProcessState, want, second.log.String())
	}
}

func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// The log goes to a file, with what changes in nginx.conf and NGINX's own messages for
// debugging.
func checkLogFile(t *testing.T, binary string) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	p := startProgram(t, binary, headgatetest.Config("keep-alive: 11"), "-v=5", "--logtostderr=false", "--log_file="+file, "--sync-rate-limit=10")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	p.write("manifests/all.yaml", headgatetest.Config("keep-alive: 12"), 0o644)
	for _, message := range []string{
		`msg="nginx.conf changes"`, `keepalive_timeout 11s;\n+`, // The difference is quoted.
		`msg="reloaded NGINX"`, "level=INFO msg=\"epoll",
	} {
		headgatetest.Eventually(t, "the file has "+message, func() bool {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(text), message)
		})
	}
	p.end()
	if got := p.log.String(); strings.Contains(got, "level=INFO") || strings.Contains(got, "level=DEBUG") {
		t.Errorf("standard error has messages below errors:\n%.2000s", got)
	}
}

// By other names, the program is another one.
func checkLinks(t *testing.T, binary string) {
	t.Parallel()
	folder := t.TempDir()
	for name, want := range map[string]string{
		"nginx-ingress-controller": "nginx-ingress-controller: unknown flag --no-such-flag\n",
		"wait-shutdown":            "wait-shutdown: unknown flag --no-such-flag\n",
		"headgate":                 "headgate: unknown flag --no-such-flag\n",
	} {
		link := filepath.Join(folder, name)
		if err := os.Symlink(binary, link); err != nil {
			t.Fatal(err)
		}
		output, err := exec.Command(link, "--no-such-flag").CombinedOutput()
		if string(output) != want || err == nil {
			t.Errorf("%s: %v: %s", name, err, output)
		}
		output, err = exec.Command(link, "--version").CombinedOutput()
		if err != nil || !strings.Contains(string(output), "  nginx version: nginx/") {
			t.Errorf("%s --version: %v: %s", name, err, output)
		}
	}
}
