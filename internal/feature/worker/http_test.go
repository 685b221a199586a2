package worker_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func start(t *testing.T, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: headgatetest.Ingress("web", "a.test", "/", "a") +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.Config(keys...)})
}

// proc reads what a file of /proc says of the worker, behind a name.
func proc(t *testing.T, g *headgatetest.Instance, file, name string) string {
	t.Helper()
	accepting := g.State().Accepting
	if len(accepting) != 1 {
		t.Fatalf("%d workers accept", len(accepting))
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", accepting[0].PID, file))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + `\s+(.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no %s", file, name)
	}
	return string(found[1])
}

// What a worker may have, and where it runs, is what the kernel says of it.
func TestWorkersChangeLive(t *testing.T) {
	t.Parallel()
	g := start(t)
	files, processors, threads := proc(t, g, "limits", "Max open files"), proc(t, g, "status", "Cpus_allowed_list:"), proc(t, g, "status", "Threads:")
	g.ApplyReloading(headgatetest.Config("max-worker-open-files: 2048", "worker-cpu-affinity: 1", "enable-aio-write: true", "enable-multi-accept: false"))
	if got := strings.Fields(proc(t, g, "limits", "Max open files"))[0]; got != "2048" {
		t.Errorf("max-worker-open-files 2048: %s", got)
	}
	if got := proc(t, g, "status", "Cpus_allowed_list:"); got != "0" {
		t.Errorf("worker-cpu-affinity 1: processors %s", got)
	}
	if got := proc(t, g, "status", "Threads:"); got == threads {
		t.Errorf("enable-aio-write: %s threads, as before", got)
	}
	g.Get("a.test", "/").WantStatus(t, 200)
	g.ApplyReloading(headgatetest.Config())
	if got := proc(t, g, "limits", "Max open files"); got != files {
		t.Errorf("without max-worker-open-files: %s, at first %s", got, files)
	}
	if got := proc(t, g, "status", "Cpus_allowed_list:"); got != processors {
		t.Errorf("without worker-cpu-affinity: processors %s, at first %s", got, processors)
	}
	if got := proc(t, g, "status", "Threads:"); got != threads {
		t.Errorf("without enable-aio-write: %s threads, at first %s", got, threads)
	}
}

// A worker has as many connections as the key says, and enough to serve in any case.
func TestConnections(t *testing.T) {
	t.Parallel()
	g := start(t, "max-worker-connections: 1")
	g.Get("a.test", "/").WantStatus(t, 200)
	const many = 700
	open := func() (closeAll func()) {
		t.Helper()
		var list []net.Conn
		for range many {
			connection, err := net.Dial("tcp", headgatetest.Address(g.HTTP))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, connection)
			// The answer, or the end of the connection, says that a worker has taken it.
			_, _ = fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: a.test\r\nX-Begun: 1\r\n")
		}
		return func() {
			for _, connection := range list {
				connection.Close()
			}
		}
	}
	few := func() int { return strings.Count(g.Log.String(), "worker_connections are not enough") }
	closeAll := open()
	headgatetest.Eventually(t, "connections are too few", func() bool { return few() > 0 })
	closeAll()
	g.ApplyReloading(headgatetest.Config("max-worker-connections: 0"))
	before := few()
	defer open()()
	g.Get("a.test", "/").WantStatus(t, 200)
	if n := few() - before; n > 0 {
		t.Errorf("max-worker-connections 0: connections are too few, %d times", n)
	}
}

// NGINX logs all about the clients that the key names, and nothing more about others.
func TestDebugConnections(t *testing.T) {
	t.Parallel()
	g := start(t, "debug-connections: 192.0.2.1")
	logged := func() bool { return strings.Contains(g.Log.String(), "http process request line") }
	g.Get("a.test", "/").WantStatus(t, 200)
	g.ApplyReloading(headgatetest.Config("debug-connections: 192.0.2.1,invalid,127.0.0.0/8"))
	if logged() {
		t.Error("a client is debugged that is not named")
	}
	g.Get("a.test", "/").WantStatus(t, 200)
	headgatetest.Eventually(t, "the client is debugged", logged)
}

// A change of the settings of workers loses no request.
func TestChangeLosesNothing(t *testing.T) {
	t.Parallel()
	g := start(t)
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for {
			select {
			case <-done:
				return
			default:
			}
			if r, err := g.Try(client, headgatetest.Request{Host: "a.test"}); err != nil || r.Status != 200 {
				failed <- fmt.Errorf("status %d, %w", r.Status, err)
				return
			}
		}
	}()
	for _, keys := range [][]string{{"max-worker-connections: 1024"}, {"enable-multi-accept: false", "enable-aio-write: true"}, {"worker-cpu-affinity: auto"}, {}} {
		g.ApplyReloading(headgatetest.Config(keys...))
	}
	close(done)
	select {
	case err := <-failed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(headgatetest.Timeout):
		t.Error("a request has no answer")
	}
}
