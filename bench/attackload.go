package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// attackers are the clients of one load. Together they send perSecond requests at
// most: what costs others is what a request does, not their number, which rate
// limits are for.
const (
	attackers = 4
	perSecond = 200
)

// A load is what clients of the attacker send.
type load struct {
	// request is the i-th, as it stands on the wire.
	request func(i int) string
	// serverName is that of the i-th TLS handshake; there are no requests then.
	serverName func(i int) string
}

// A tally counts answers by status, 0 for none.
type tally struct {
	mutex  sync.Mutex
	counts map[int]int
}

func newTally() *tally { return &tally{counts: map[int]int{}} }

func (t *tally) add(status int) {
	t.mutex.Lock()
	t.counts[status]++
	t.mutex.Unlock()
}

// run sends until ctx ends.
func (l load) run(ctx context.Context, a *arena, answers *tally) {
	var number atomic.Int64
	var all sync.WaitGroup
	for range attackers {
		all.Go(func() {
			tick := time.NewTicker(attackers * time.Second / perSecond)
			defer tick.Stop()
			wire := &wire{arena: a}
			defer wire.close()
			for ctx.Err() == nil {
				i := int(number.Add(1))
				if l.serverName != nil {
					answers.add(a.greet(l.serverName(i)))
				} else {
					answers.add(wire.send(l.request(i)))
				}
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		})
	}
	all.Wait()
}

// greet makes a TLS handshake and returns 200 if it is one.
func (a *arena) greet(name string) int {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: requestTimeout}, "tcp", local(a.https), &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return 0
	}
	conn.Close()
	return http.StatusOK
}

// A wire is a kept connection for requests of any form.
type wire struct {
	arena  *arena
	conn   net.Conn
	reader *bufio.Reader
}

// send returns the status of the answer, 0 if there is none.
func (w *wire) send(request string) int {
	if w.conn == nil {
		conn, err := net.DialTimeout("tcp", local(w.arena.port), requestTimeout)
		if err != nil {
			return 0
		}
		w.conn, w.reader = conn, bufio.NewReader(conn)
	}
	if w.conn.SetDeadline(time.Now().Add(requestTimeout)) != nil {
		return 0
	}
	if _, err := io.WriteString(w.conn, request); err != nil {
		w.close()
		return 0
	}
	response, err := http.ReadResponse(w.reader, nil)
	if err != nil {
		w.close()
		return 0
	}
	_, err = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if err != nil || response.Close {
		w.close()
	}
	return response.StatusCode
}

func (w *wire) close() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}
