package headgatetest

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// A Connection is a client's connection for http, which sends one request after the other.
// It takes a fraction of the time of an http.Client, for tests that send many.
type Connection struct {
	// Worker is the worker that has the connection, from 0. Only Connections sets it.
	Worker int

	connection net.Conn
	reader     *bufio.Reader
}

// Connect makes a connection, until the test ends.
func (g *Instance) Connect() *Connection {
	g.t.Helper()
	connection := Dial(g.t, g.HTTP)
	return &Connection{connection: connection, reader: bufio.NewReader(connection)}
}

// Ask sends a request without a body. headers are "Name: value". The body of the response
// is read.
func (c *Connection) Ask(host, path string, headers ...string) (*http.Response, error) {
	text := "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n"
	for _, header := range headers {
		text += header + "\r\n"
	}
	if err := c.connection.SetDeadline(time.Now().Add(Timeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.connection, text+"\r\n"); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response, err
}

// Connections are those of several clients.
type Connections []*Connection

// workerHost answers with the number of the worker.
const workerHost = "worker.test"

// ShowsWorker is what an Instance needs for Connections: a feature, and an Ingress that uses it.
func ShowsWorker() (feature.Feature, string) {
	show := feature.Setting[bool]{Annotation: "show-worker", Parse: feature.Bool}
	const name = "show_worker"
	return feature.Feature{
		Name: name, Settings: []feature.AnySetting{show},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if show.Get(v) {
				feature.Add(out.Route, name, struct{}{})
			}
		},
		Lua: featuretest.Module(name, `
local requests = require "headgate.request"
return { rewrite = function(_, request)
    ngx.header["X-Worker"] = ngx.worker.id()
    return requests.finish(request, 204)
end }`),
	}, Ingress("show-worker", workerHost, "/", "nothing", "show-worker: true")
}

// Connections makes connections until each of so many workers has as many as that. The Instance
// must have what ShowsWorker returns.
func (g *Instance) Connections(workers, each int) Connections {
	g.t.Helper()
	var clients Connections
	counts := make([]int, workers)
	for len(clients) < workers*each {
		c := g.Connect()
		response, err := c.Ask(workerHost, "/")
		must(g.t, err)
		if _, err := fmt.Sscan(response.Header.Get("X-Worker"), &c.Worker); err != nil || c.Worker >= workers {
			g.t.Fatalf("the worker is %q: %v", response.Header.Get("X-Worker"), err)
		}
		if counts[c.Worker] == each {
			c.connection.Close()
			continue
		}
		counts[c.Worker]++
		clients = append(clients, c)
	}
	return clients
}

// Each has the connections call ask for the numbers from 0, all at the same time. It ends at
// the first error.
func (c Connections) Each(requests int, ask func(c *Connection, i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for _, one := range c {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < requests && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := ask(one, i); err != nil {
					err = fmt.Errorf("request %d: %w", i, err)
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// StartPlain runs a backend for requests without a body, at a fraction of the time of
// StartBackend. answer returns a status, 200 if it is 0, and header lines with their ends.
func StartPlain(t testing.TB, answer func(r *http.Request) (status int, headers string)) string {
	t.Helper()
	return porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) { serve(c, answer) }).String()
}

func serve(connection net.Conn, answer func(r *http.Request) (status int, headers string)) {
	reader := bufio.NewReader(connection)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		status, headers := answer(request)
		// Who is gone misses the answer.
		if _, err := fmt.Fprintf(connection, "HTTP/1.1 %d X\r\nContent-Length: 0\r\n%s\r\n", cmp.Or(status, http.StatusOK), headers); err != nil {
			return
		}
	}
}
