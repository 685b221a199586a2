package dataplane_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// withNames makes the program find the names of a file alone.
func (p *program) withNames(binary, hosts string) {
	p.t.Helper()
	root := filepath.Dir(p.folder)
	p.write("hosts", hosts, 0o644)
	p.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n", 0o644)
	p.write("named", fmt.Sprintf("#!/bin/sh\nmount --bind %[1]s/hosts /etc/hosts && mount --bind %[1]s/resolv.conf /etc/resolv.conf && exec %[2]s \"$@\"\n", root, binary), 0o755)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Path = unshare
	p.cmd.Args = append([]string{unshare, "--mount", filepath.Join(root, "named")}, p.cmd.Args[1:]...)
}

// What NGINX can't write to any more is left out of its configuration: other changes go live.
func checkLogTargets(t *testing.T, binary string) {
	t.Parallel()
	server := headgatetest.StartSyslog(t)
	_, port, _ := net.SplitHostPort(server.LocalAddr().String())
	manifests := func(more string) string {
		return served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one") + more
	}
	p := newProgram(t, binary, manifests(""))
	folder := filepath.Join(filepath.Dir(p.folder), "logs")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	config := headgatetest.Config("access-log-path: syslog:server=logs.invalid:"+port, "error-log-path: "+folder+"/error.log")
	p.write("manifests/config.yaml", config, 0o644)
	const named = "127.0.0.1 logs.invalid\n"
	p.withNames(binary, named)
	p.start()
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	post := func(host, path string, size int) int {
		request, err := http.NewRequest("POST", "http://"+headgatetest.Address(p.http)+path, io.MultiReader(strings.NewReader(strings.Repeat("x", size))))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		response.Body.Close()
		return response.StatusCode
	}
	isLogged := func(path string) func() bool {
		return func() bool {
			post("a.test", path, 0)
			return strings.Contains(server.String(), "POST "+path+" ")
		}
	}
	headgatetest.Eventually(t, "the server has lines", isLogged("/first"))

	p.write("hosts", "", 0o644)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	// Only a reload gives it a limit of its own for bodies without a length.
	p.write("manifests/more.yaml", headgatetest.Ingress("more", "more.test", "/", "one", "proxy-body-size: 3m"), 0o644)
	headgatetest.Eventually(t, "another change is served", func() bool { return post("more.test", "/", 2<<20) == 200 })
	for key, why := range map[string]string{"access-log-path": "host not found in syslog server", "error-log-path": "No such file or directory"} {
		found := false
		for line := range strings.Lines(p.log.String()) {
			found = found || strings.Contains(line, "field="+key+" ") && strings.Contains(line, why) && strings.Contains(line, `effect="the setting has no effect"`)
		}
		if !found {
			t.Errorf("no finding about %s has %q", key, why)
		}
	}
	headgatetest.Eventually(t, "standard output has lines", func() bool {
		post("a.test", "/second", 0)
		return strings.Contains(p.log.String(), `"POST /second HTTP/1.1" 200`)
	})
	p.write("hosts", named, 0o644)
	headgatetest.Eventually(t, "the server has lines again", isLogged("/third"))
}
