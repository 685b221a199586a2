package router_test

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/lua"
)

//go:embed testdata
var testdata embed.FS

// A fixture is an NGINX with Headgate's Lua modules that answers questions.
type fixture struct {
	dir    string
	client *http.Client
	// alike is set if Lua uses the same release of the library as Go. Otherwise
	// only patterns are used that all releases match alike.
	alike bool
}

// A question is a name, as $host has it, and a path, as $uri has it.
type question struct{ host, path string }

func newFixture(t testing.TB) *fixture {
	t.Helper()
	found, err := nginx.Discover(t.Context())
	must(t, err)
	// Not t.TempDir: its name is long, and NGINX may run in a root of its own that has this /tmp.
	dir, err := os.MkdirTemp("/tmp", "hg-router-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &fixture{dir: dir, client: &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(dir, "decide") },
	}}}
	t.Cleanup(b.client.CloseIdleConnections)
	b.writeFiles(t, found.Modules)
	b.start(t, found.Binary)
	here, err := pcre.Version()
	must(t, err)
	there := b.post(t, "/version", nil)
	b.alike = there == here
	t.Logf("NGINX %s; PCRE %s here, %s in Lua", found.Version, here, there)
	return b
}

func dial(dir, server string) (net.Conn, error) { return net.Dial("unix", filepath.Join(dir, server)) }

func (b *fixture) writeFiles(t testing.TB, modules []string) {
	t.Helper()
	files, err := lua.Files(all.Features())
	must(t, err)
	if files["decide.lua"], err = testdata.ReadFile("testdata/decide.lua"); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		b.write(t, "lua/"+name, string(content))
	}
	var load strings.Builder
	for _, module := range modules {
		fmt.Fprintf(&load, "load_module %s;\n", module)
	}
	conf, err := testdata.ReadFile("testdata/nginx.conf")
	must(t, err)
	b.write(t, "nginx.conf", strings.NewReplacer(
		"DIR", b.dir, "MODULES", load.String(), "LIMIT", strconv.Itoa(pcre.MatchLimit), "STACK", strconv.Itoa(pcre.JITStack),
	).Replace(string(conf)))
}

func (b *fixture) write(t testing.TB, name, content string) {
	t.Helper()
	name = filepath.Join(b.dir, name)
	must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must(t, os.WriteFile(name, []byte(content), 0o600))
}

// start runs NGINX until the test ends, and waits until it answers.
func (b *fixture) start(t testing.TB, binary string) {
	t.Helper()
	var output bytes.Buffer
	command := exec.Command(binary, "-p", b.dir, "-c", filepath.Join(b.dir, "nginx.conf"))
	command.Stdout, command.Stderr = &output, &output
	// A fuzz worker may be killed, and a reader of its pipes waits for NGINX too.
	// NGINX dies with the thread that started it.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		started <- command.Start()
		_ = command.Wait()
		close(ended)
	}()
	must(t, <-started)
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if log, _ := os.ReadFile(filepath.Join(b.dir, "error.log")); t.Failed() {
			t.Logf("NGINX: %s%s", output.Bytes(), log)
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if connection, err := dial(b.dir, "read"); err == nil {
			connection.Close()
			return
		}
		select {
		case <-ended:
			t.Fatal("NGINX ended")
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("NGINX does not answer")
		}
	}
}

func (b *fixture) post(t testing.TB, path string, body []byte) string {
	t.Helper()
	response, err := b.client.Post("http://router"+path, "", bytes.NewReader(body))
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("NGINX answers %d %s", response.StatusCode, answer)
	}
	return string(answer)
}

// decide returns Lua's answers.
func (b *fixture) decide(t testing.TB, units []unit.Unit, questions []question) []string {
	t.Helper()
	var batch bytes.Buffer
	text := func(values ...string) {
		for _, value := range values {
			batch.WriteString(strconv.Itoa(len(value)))
			batch.WriteByte(':')
			batch.WriteString(value)
		}
	}
	text(strconv.Itoa(len(units)))
	for _, u := range units {
		text(string(u.Kind), u.Name, string(u.Payload))
	}
	text(strconv.Itoa(len(questions)))
	for _, q := range questions {
		text(q.host, q.path)
	}
	answers := texts(b.post(t, "/", batch.Bytes()))
	if len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(answers), len(questions))
	}
	return answers
}

// texts reads texts with their length before them.
func texts(from string) []string {
	var list []string
	for from != "" {
		length, rest, _ := strings.Cut(from, ":")
		n, err := strconv.Atoi(length)
		if err != nil || n > len(rest) {
			return append(list, "unreadable: "+from)
		}
		list, from = append(list, rest[:n]), rest[n:]
	}
	return list
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
