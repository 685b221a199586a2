package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// requestTimeout bounds one request of a client.
const requestTimeout = 5 * time.Second

// A dialer connects in the network that it stands for.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// loopback is the dialer of the benchmark's own network.
func loopback(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// A client sends one request after the other over a connection that it keeps.
type client struct {
	dial   dialer
	port   int
	conn   net.Conn
	reader *bufio.Reader
}

// An answer is what a client got.
type answer struct {
	status int
	body   string
}

// get asks for a host's root.
func (c *client) get(ctx context.Context, host string) (answer, error) {
	return c.ask(ctx, http.MethodGet, "/", host)
}

// ask sends a request without a body.
func (c *client) ask(ctx context.Context, method, path, host string) (answer, error) {
	if c.conn == nil {
		conn, err := c.dial(ctx, "tcp", local(c.port))
		if err != nil {
			return answer{}, err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	got, err := c.exchange(method, path, host)
	if err != nil {
		c.close()
	}
	return got, err
}

func (c *client) exchange(method, path, host string) (answer, error) {
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return answer{}, err
	}
	if _, err := io.WriteString(c.conn, method+" "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		return answer{}, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	if response.Close {
		c.close()
	}
	return answer{response.StatusCode, string(body)}, nil
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// until sends requests without a pause until the answer has a status.
func (c *client) until(ctx context.Context, host string, wanted int) error {
	const timeout = 30 * time.Second
	deadline := time.Now().Add(timeout)
	for {
		got, err := c.get(ctx, host)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("ask for %s: %w", host, err)
		case got.status == wanted:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s still answers %d after %v and not %d", host, got.status, timeout, wanted)
		}
	}
}

// A bystander is a client that sends requests throughout a measurement.
type bystander struct {
	requests, lost int
	done           chan struct{}
}

// watch sends a request every few milliseconds, to one host after the other, until ctx
// ends.
func watch(ctx context.Context, h *headgate, hosts ...string) *bystander {
	b := &bystander{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		c := h.client()
		defer c.close()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			// The last request is not to fail for the end of the measurement.
			got, err := c.get(context.WithoutCancel(ctx), hosts[b.requests%len(hosts)])
			b.requests++
			if err != nil || got.status != http.StatusOK {
				b.lost++
			}
			<-tick.C
		}
	}()
	return b
}
