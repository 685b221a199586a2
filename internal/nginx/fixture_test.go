package nginx

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/headgate/headgate/internal/nginx/rundir"

	"github.com/headgate/headgate/internal/test/porttest"
)

// TestMain makes the test binary a controller that a test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TEST_CONTROLLER_DIR"); dir != "" {
		controller(dir, netip.MustParseAddrPort(os.Getenv("TEST_CONTROLLER_ADDRESS")))
	}
	os.Exit(m.Run())
}

// controller runs NGINX until it is killed.
func controller(path string, address netip.AddrPort) {
	dir, err := rundir.Open(path)
	if err == nil {
		var found Capabilities
		if found, err = Discover(context.Background()); err == nil {
			p := New(Options{
				Capabilities: found, Dir: dir, Addresses: []netip.AddrPort{address}, Log: slog.New(slog.DiscardHandler),
			})
			err = p.Start(context.Background())
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// A fixture is a run directory with a small configuration, and a Process for it.
type fixture struct {
	*Process
	Dir          *rundir.Dir
	Capabilities Capabilities
	Address      netip.AddrPort
	AccessLog    *AccessLog
	Init         string
	logs         *buffer
	t            *testing.T
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	found, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := rundir.Open(tempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	b := &fixture{Dir: dir, Capabilities: found, Address: freeAddress(t), logs: &buffer{}, t: t}
	b.renew(nil)
	if err := dir.WriteGeneration(1); err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteLua(map[string][]byte{"greeting/hello.lua": []byte(`return "hello"`)}); err != nil {
		t.Fatal(err)
	}
	b.write("nginx.conf")
	return b
}

// renew creates a new Process for the same directory.
func (b *fixture) renew(log *AccessLog) {
	b.AccessLog = log
	b.Process = New(Options{
		Capabilities: b.Capabilities, Dir: b.Dir, Addresses: []netip.AddrPort{b.Address}, AccessLog: log,
		Log: slog.New(slog.NewTextHandler(b.logs, nil)),
	})
}

func (b *fixture) write(name string) string {
	b.t.Helper()
	text := template.Must(template.ParseFiles("testdata/nginx.conf.tmpl"))
	var conf bytes.Buffer
	if err := text.Execute(&conf, b); err != nil {
		b.t.Fatal(err)
	}
	if err := b.Dir.Write(map[string][]byte{name: conf.Bytes()}); err != nil {
		b.t.Fatal(err)
	}
	return filepath.Join(b.Dir.Path(), name)
}

func (b *fixture) start() {
	b.t.Helper()
	if err := b.Start(b.t.Context()); err != nil {
		b.t.Fatalf("%v\n%s", err, b.logs)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := b.Stop(ctx); err != nil {
			b.t.Error(err)
		}
	})
}

// get uses a new connection, since connections may end with their worker.
func (b *fixture) get(path string) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Get("http://" + b.Address.String() + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(text)), err
}

func (b *fixture) mustGet(path string) string {
	b.t.Helper()
	text, err := b.get(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// An echo is a long connection, like a WebSocket.
type echo struct {
	net.Conn
	lines *bufio.Reader
}

func (b *fixture) echo() *echo {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.Address.String())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n")
	return &echo{conn, bufio.NewReader(conn)}
}

// say returns the process ID of the worker that responded.
func (e *echo) say(t *testing.T, word string) (pid int) {
	t.Helper()
	e.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintln(e, word)
	line, err := e.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if _, err := fmt.Sscan(line, &got, &pid); err != nil || got != word {
		t.Fatalf("said %q, heard %q: %v", word, line, err)
	}
	return pid
}

// A buffer may be written and read at the same time.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// tempDir is a directory with a short name that workers can access.
func tempDir(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "hg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), porttest.Free(t))
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
