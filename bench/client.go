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

// requestPatience bounds one request of a client.
const requestPatience = 5 * time.Second

// A client sends one request after the other over a connection that it keeps.
type client struct {
	port   int
	conn   net.Conn
	reader *bufio.Reader
}

// get asks for a host's root and returns the answer's status.
func (c *client) get(host string) (int, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", local(c.port))
		if err != nil {
			return 0, err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	status, err := c.exchange(host)
	if err != nil {
		c.close()
	}
	return status, err
}

func (c *client) exchange(host string) (int, error) {
	if err := c.conn.SetDeadline(time.Now().Add(requestPatience)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(c.conn, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	if response.Close {
		c.close()
	}
	return response.StatusCode, nil
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// until asks, without a pause, until the answer has a status.
func (c *client) until(ctx context.Context, host string, wanted int) error {
	const patience = 30 * time.Second
	deadline := time.Now().Add(patience)
	for {
		status, err := c.get(host)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("ask for %s: %w", host, err)
		case status == wanted:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s still answers %d after %v and not %d", host, status, patience, wanted)
		}
	}
}

// A bystander is a client of a host that nothing happens to.
type bystander struct {
	requests, lost int
	done           chan struct{}
}

// watch asks for a host every few milliseconds until ctx ends.
func watch(ctx context.Context, port int, host string) *bystander {
	b := &bystander{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		c := &client{port: port}
		defer c.close()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			b.requests++
			if status, err := c.get(host); err != nil || status != http.StatusOK {
				b.lost++
			}
			<-tick.C
		}
	}()
	return b
}
