package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// A flooded program has a host of a tenant whose requests each make NGINX log almost 2
// KB, and another tenant's host.
func flooded(t *testing.T) string {
	return served("one", headgatetest.StartEcho(t, "one")) + served("dead", headgatetest.Address(porttest.Free(t))) +
		headgatetest.Ingress("a", "a.test", "/", "one") + headgatetest.Ingress("flood", "flood.test", "/", "dead")
}

// flood has NGINX log twice as much as its pipes and the controller's queue hold
// together, and says how many requests of the other tenant were answered, of how many.
func (p *program) flood() (answered, asked int) {
	p.t.Helper()
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer client.CloseIdleConnections()
	get := func(host, path string) (int, error) {
		request, err := http.NewRequest("GET", "http://"+headgatetest.Address(p.http)+path, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		request.Host = host
		response, err := client.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	const lineBytes, each = 1900, 200
	path := "/" + strings.Repeat("x", lineBytes)
	for i := range (6 << 20) / lineBytes {
		if status, err := get("flood.test", path); err != nil || status != 502 && status != 504 {
			p.t.Errorf("request %d that is logged: %d, %v", i, status, err)
			return answered, asked
		}
		if i%each != 0 {
			continue
		}
		asked++
		if status, err := get("a.test", "/"); err == nil && status == 200 {
			answered++
		}
	}
	return answered, asked
}

// Finding C1: a controller that does not run any more costs lines of the log, not
// requests.
func checkControllerHangs(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, flooded(t))
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	kill(t, p.cmd.Process.Pid, syscall.SIGSTOP)
	defer kill(t, p.cmd.Process.Pid, syscall.SIGCONT)
	answered, asked := p.flood()
	t.Logf("the other tenant: %d of %d requests were answered", answered, asked)
	if answered != asked || asked < 2 {
		t.Errorf("the other tenant: %d of %d requests were answered", answered, asked)
	}
}

// Nor does one of its outputs that is not read stop NGINX or the controller.
func checkLogsAreNotRead(t *testing.T, binary string) {
	t.Parallel()
	r, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer stderr.Close()
	full(t, stderr)
	// NGINX can't open a socket by name: its access log goes through the controller.
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout, reader := os.NewFile(uintptr(pair[0]), "stdout"), os.NewFile(uintptr(pair[1]), "reader")
	defer stdout.Close()
	defer reader.Close()
	p := startProgramWith(t, binary, stdout, stderr, flooded(t))
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	answered, asked := p.flood()
	if answered != asked || asked < 2 {
		t.Errorf("the other tenant: %d of %d requests were answered", answered, asked)
	}
	p.write("manifests/more.yaml", headgatetest.Ingress("more", "more.test", "/", "one"), 0o644)
	headgatetest.Eventually(t, "a change is served", func() bool {
		l := &line{port: p.http}
		defer l.close()
		return l.post("more.test") == nil
	})
	var dropped float64
	for line := range strings.Lines(p.metrics()) {
		if strings.HasPrefix(line, "headgate_log_lines_dropped_total") {
			fmt.Sscanf(line, "headgate_log_lines_dropped_total %g", &dropped)
		}
	}
	if dropped < 100 {
		t.Errorf("the metric says that %v lines were dropped", dropped)
	}
	p.end()
	if !p.cmd.ProcessState.Success() {
		t.Errorf("it left with %s", p.cmd.ProcessState)
	}
}

// When the reader of the outputs ends, the program goes on without a log, and so do the NGINX
// of a reload and one that is started again.
func checkLogReaderEnds(t *testing.T, binary string) {
	t.Parallel()
	r, outputs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := startProgramWith(t, binary, outputs, outputs, served("one", headgatetest.StartEcho(t, "one"))+headgatetest.Config())
	outputs.Close()
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	r.Close()
	p.write("manifests/bad.yaml", "a: b: c\n", 0o644)
	headgatetest.Eventually(t, "a finding about the broken file, which is logged", func() bool {
		found := p.findings()
		return len(found) == 1 && found[0].Code == finding.BadManifest
	})
	serves := func(host string) {
		headgatetest.Eventually(t, host+" is served", func() bool {
			l := &line{port: p.http}
			defer l.close()
			return l.post(host) == nil
		})
	}
	p.write("manifests/more.yaml", headgatetest.Ingress("more", "more.test", "/", "one", "proxy-buffering: on"), 0o644)
	serves("more.test")
	master := p.master()
	kill(t, -master, syscall.SIGKILL)
	headgatetest.Eventually(t, "there is another NGINX", func() bool { return p.healthy() && p.master() != master })
	serves("more.test")
	p.end()
	if !p.cmd.ProcessState.Success() {
		t.Errorf("it left with %s", p.cmd.ProcessState)
	}
}

// Workers share standard output, which is a pipe in containers: long lines of several at once are
// whole, since all of them fit into it.
func checkLongLines(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, served("one", headgatetest.StartEcho(t, "one"))+headgatetest.Ingress("web", "a.test", "/", "one", "permanent-redirect: http://b.test/")+
		headgatetest.Config("worker-processes: 4", "log-format-escape-json: true", `log-format-upstream: {"long": "$http_x_1$http_x_2$http_x_3", "uri": "$request_uri"}`))
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	// Six bytes of a line for each.
	const requests, size = 6, 7800
	request := "GET /long HTTP/1.1\r\nHost: a.test\r\nConnection: close"
	for i := range 3 {
		request += fmt.Sprintf("\r\nX-%d: %s", i+1, strings.Repeat("\x01", size))
	}
	var wait sync.WaitGroup
	for range requests {
		wait.Go(func() {
			connection := headgatetest.Dial(t, p.http)
			defer connection.Close()
			fmt.Fprint(connection, request+"\r\n\r\n")
			if answer, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 301") {
				t.Errorf("%v: %.100s", err, answer)
			}
		})
	}
	wait.Wait()
	const end = `", "uri": "/long"}`
	headgatetest.Eventually(t, "all lines are there", func() bool { return strings.Count(p.log.String(), end+"\n") == requests })
	want, whole := `{"long": "`+strings.Repeat(`\u0001`, 3*size)+end+"\n", 0
	for line := range strings.Lines(p.log.String()) {
		if line == want {
			whole++
		}
	}
	if whole != requests {
		t.Errorf("%d of %d lines are whole", whole, requests)
	}
}

// full fills a pipe.
func full(t *testing.T, w *os.File) {
	t.Helper()
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}
