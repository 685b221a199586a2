// Package dataplane_test asks a real NGINX, driven by the whole of Headgate,
// whether it holds what docs promise: under load, through reloads and crashes,
// and when memory is short.
package dataplane_test

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// namingWorkers are the real features and one that has each answer name the worker
// that gave it, as "GENERATION PID INSTANCE".
func namingWorkers() []feature.Feature {
	return append(all.Features(), feature.Feature{
		Name: "name_worker",
		Route: func(_ feature.Values, out *feature.RouteOut) {
			feature.Add(out.Route, "name_worker", struct{}{})
			out.Route.Variant.HeaderFilter = true
		},
		Lua: featuretest.Module("name_worker", `
local memory = require "headgate.memory"
local settings = require "headgate.settings"
return {
    header_filter = function()
        ngx.header["X-Worker"] = settings.generation .. " " .. ngx.worker.pid() .. " " .. memory.instance()
    end,
}`),
	})
}

// A worker is what an answer says with the features of namingWorkers.
type worker struct {
	generation, pid int
	instance        string
}

func workerOf(t testing.TB, header http.Header) worker {
	t.Helper()
	var w worker
	if _, err := fmt.Sscan(header.Get("X-Worker"), &w.generation, &w.pid, &w.instance); err != nil {
		t.Fatalf("an answer without its worker: %v: %v", err, header)
	}
	return w
}

// reload has NGINX reloaded once, by a setting of the process.
func reload(t testing.TB, g *headgatetest.Instance) {
	t.Helper()
	g.ApplyReloading(headgatetest.Config(fmt.Sprintf("keep-alive-requests: %d", 100000+g.Value(g.Metrics.Reloads))))
}

// wantEcho fails the test unless the named backend answered.
func wantEcho(t testing.TB, r headgatetest.Response, backend string) {
	t.Helper()
	if r.Status != 200 || r.Echo == nil || r.Echo.Backend != backend {
		t.Errorf("status %d, echo %+v; want 200 from backend %s", r.Status, r.Echo, backend)
	}
}

// A load is clients that ask again and again.
type load struct {
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	asked int
	wrong []string
}

// startLoad runs clients, each with an ask of its own. What ask returns is
// counted as wrong.
func startLoad(t testing.TB, clients int, client func(number int) (ask func() error)) *load {
	t.Helper()
	l := &load{stop: make(chan struct{})}
	for number := range clients {
		ask := client(number)
		l.done.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				l.count(ask())
			}
		})
	}
	t.Cleanup(func() { l.end() })
	return l
}

func (l *load) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if err != nil {
		l.wrong = append(l.wrong, err.Error())
	}
}

// end stops the clients and returns the number of requests and what was wrong.
func (l *load) end() (asked int, wrong []string) {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
	return l.asked, l.wrong
}

// wantNoneWrong ends a load that must have met nothing wrong in at least so
// many requests.
func (l *load) wantNoneWrong(t testing.TB, least int) {
	t.Helper()
	asked, wrong := l.end()
	t.Logf("%d requests, %d wrong", asked, len(wrong))
	if asked < least {
		t.Errorf("%d requests are too few to show anything, want %d", asked, least)
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d requests went wrong, the first: %s", len(wrong), asked, strings.Join(wrong[:min(5, len(wrong))], "; "))
	}
}

// A line is an HTTP/1.1 connection, made again only where the other side has
// announced its end. Nothing is ever sent twice.
type line struct {
	port       uint16
	connection net.Conn
	reader     *bufio.Reader

	// idle is how long a connection may be unused before a new one is used
	// instead, 0 for ever. NGINX keeps connections for a while when it is asked to
	// leave, and a client that this machine held up for longer proves nothing.
	idle time.Duration
	used time.Time
}

// renew closes a connection that was unused for too long.
func (l *line) renew() {
	if l.idle > 0 && time.Since(l.used) > l.idle {
		l.close()
	}
}

func (l *line) open() error {
	l.renew()
	if l.connection != nil {
		return nil
	}
	var err error
	if l.connection, err = net.DialTimeout("tcp", headgatetest.Address(l.port), headgatetest.Timeout); err != nil {
		return err
	}
	l.reader = bufio.NewReader(l.connection)
	l.used = time.Now()
	return l.connection.SetDeadline(time.Now().Add(2 * headgatetest.Timeout))
}

func (l *line) close() {
	if l.connection != nil {
		l.connection.Close()
		l.connection = nil
	}
}

// send writes text, which may be a part of a request.
func (l *line) send(text string) error {
	if err := l.open(); err != nil {
		return err
	}
	_, err := io.WriteString(l.connection, text)
	return err
}

// answer reads one answer to its end.
func (l *line) answer() (*http.Response, error) {
	response, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		l.close()
		return nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err != nil || response.Close {
		l.close()
	}
	l.used = time.Now()
	return response, err
}

// post sends a POST request and returns an error unless it is answered 200.
func (l *line) post(host string) error {
	if err := l.send("POST / HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
		l.close()
		return fmt.Errorf("send: %w", err)
	}
	response, err := l.answer()
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return wantOK(response.StatusCode)
}

func wantOK(status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d", status)
	}
	return nil
}

// wantShown fails the test unless TLS clients of a host are shown a
// certificate.
func wantShown(t testing.TB, g *headgatetest.Instance, host string, pair headgatetest.KeyPair) {
	t.Helper()
	r := g.Do(headgatetest.Request{Scheme: "https", Host: host}).WantStatus(t, 200)
	leaf := r.TLS.PeerCertificates[0]
	if shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}); string(shown) != pair.Certificate {
		t.Errorf("%s shows the certificate of %s, want its own newest", host, leaf.Subject)
	}
}
