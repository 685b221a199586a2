package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// pace is the time between two requests of one client. It leaves processor time
// for the cluster and Headgate.
const pace = 4 * time.Millisecond

// A load is a set of clients that send requests over kept connections and never
// retry one.
type load struct {
	h *headgate
	// at is Headgate's address for the clients, without a port.
	at   string
	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	answered int
	failures []failure
}

// A failure is a request that was not answered 200.
type failure struct {
	began time.Time
	err   error
}

// startLoad starts six clients of a host: HTTP and HTTPS, GET and POST. The host
// has no certificate, so that it answers over both.
func (h *headgate) startLoad(host string) *load {
	h.t.Helper()
	l := h.newLoad(h.address)
	for number := range 6 {
		l.add(client{host: host, secure: number%3 == 2}, number%2 == 1, pace)
	}
	l.awaitMore(50)
	return l
}

// newLoad makes a load without clients. It ends with the test.
func (h *headgate) newLoad(address string) *load {
	l := &load{h: h, at: address, stop: make(chan struct{})}
	h.t.Cleanup(l.end)
	return l
}

// add starts a client that sends a request once in the given time.
func (l *load) add(c client, post bool, every time.Duration) {
	c.cluster, c.at = l.h.cluster, l.at
	request := "GET / HTTP/1.1\r\nHost: " + c.host + "\r\n\r\n"
	if post {
		request = "POST / HTTP/1.1\r\nHost: " + c.host + "\r\nContent-Length: 5\r\n\r\nhello"
	}
	l.repeat(every, func() error { return c.do(request) }, c.close)
}

// repeat does something once in the given time, until the load ends.
func (l *load) repeat(every time.Duration, do func() error, end func()) {
	l.done.Go(func() {
		defer end()
		next := time.NewTicker(every)
		defer next.Stop()
		for {
			select {
			case <-l.stop:
				return
			case <-next.C:
			}
			began := time.Now()
			l.count(began, do())
		}
	})
}

func (l *load) count(began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.answered++
		return
	}
	l.failures = append(l.failures, failure{began, err})
}

func (l *load) now() (answered int, failures []failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered, l.failures
}

// awaitMore waits until so many more requests were answered 200.
func (l *load) awaitMore(more int) {
	l.h.t.Helper()
	before, _ := l.now()
	clustertest.Eventually(l.h.t, timeout, func(context.Context) error {
		answered, failures := l.now()
		if answered < before+more {
			return fmt.Errorf("only %d requests were answered; %d failed: %v", answered-before, len(failures), first(failures))
		}
		return nil
	})
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

// wantNoFailure ends a load in which every request must have been answered 200.
func (l *load) wantNoFailure() {
	l.h.t.Helper()
	l.end()
	answered, failures := l.now()
	l.h.t.Logf("%d requests, %d failed", answered+len(failures), len(failures))
	if len(failures) > 0 {
		l.h.t.Errorf("%d requests failed: %v", len(failures), first(failures))
	}
}

func first(failures []failure) string {
	var b strings.Builder
	for _, f := range failures[:min(5, len(failures))] {
		fmt.Fprintf(&b, "%s %v; ", f.began.Format("15:04:05.000"), f.err)
	}
	return b.String()
}

// A client has one HTTP/1.1 connection. It opens another one only after the
// server announced the end of the connection, or a request failed.
type client struct {
	cluster *clustertest.Cluster
	at      string
	host    string
	secure  bool
	// fresh: each request has its own connection.
	fresh bool
	// idle is how long the client keeps an unused connection, 0 for no limit. The
	// server may close a connection that is idle for longer, on a slow machine
	// too, and that would prove nothing.
	idle       time.Duration
	used       time.Time
	connection net.Conn
	reader     *bufio.Reader
}

// do sends a request and returns an error unless it is answered 200.
func (c *client) do(request string) error {
	if err := c.open(); err != nil {
		c.close()
		return fmt.Errorf("connect: %w", err)
	}
	if _, err := io.WriteString(c.connection, request); err != nil {
		c.close()
		return fmt.Errorf("send: %w", err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
	}
	if err != nil {
		c.close()
		return fmt.Errorf("read the answer: %w", err)
	}
	c.used = time.Now()
	if response.Close || c.fresh {
		c.close()
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

func (c *client) open() error {
	if c.idle > 0 && time.Since(c.used) > c.idle {
		c.close()
	}
	if c.connection == nil {
		if err := c.dial(); err != nil {
			return err
		}
	}
	return c.connection.SetDeadline(time.Now().Add(answerTimeout))
}

func (c *client) dial() error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	port := "80"
	if c.secure {
		port = "443"
	}
	var err error
	if c.connection, err = c.cluster.Dial(ctx, "tcp", net.JoinHostPort(c.at, port)); err != nil {
		return err
	}
	if c.secure {
		config := anyCertificate()
		config.ServerName = c.host
		c.connection = tls.Client(c.connection, config)
	}
	c.reader = bufio.NewReader(c.connection)
	return nil
}

func (c *client) close() {
	if c.connection != nil {
		c.connection.Close()
		c.connection = nil
	}
}

// The load's own test: a failure must be seen.
func TestLoadSeesFailures(t *testing.T) {
	h := startHeadgate(t)
	h.createBackend("web")
	h.createIngress(h.ingress("web", h.host("web"), "/", "web", ""))
	h.await("http://"+h.host("web")+"/", from("web"))
	l := h.startLoad(h.host("web"))
	h.deleteIngress("web")
	clustertest.Eventually(t, timeout, func(context.Context) error {
		if _, failures := l.now(); len(failures) == 0 {
			return errors.New("a deleted host, and no request failed")
		}
		return nil
	})
}
