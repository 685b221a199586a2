package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// endpoints prints what clients notice of an endpoint that ends, while nothing else says so: no
// configuration changes. A proxy sees it by its tries, or by its own checks, where it has them.
func (t *peerTask) endpoints(ctx context.Context) error {
	lost, last, longest := []string{"requests lost"}, []string{"the last one lost after, ms"}, []string{"the longest answer, ms"}
	for _, kind := range t.kinds {
		fmt.Fprintf(os.Stderr, "peers, %s and the death of an endpoint\n", kind.name)
		r, err := t.endEndpoint(ctx, kind)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		lost = append(lost, fmt.Sprintf("%d of %s", r.lost, thousands(r.asked)))
		text := "–"
		if r.lost > 0 {
			text = short(milliseconds(r.last))
		}
		last = append(last, text)
		longest = append(longest, short(milliseconds(r.longest)))
	}
	t.print("the death of one endpoint of two", [][]string{lost, last, longest})
	return nil
}

// A death is what a client noticed of it.
type death struct {
	asked, lost int
	// last is when the last lost request was sent, after the death.
	last time.Duration
	// longest is what the slowest good answer took.
	longest time.Duration
}

// endEndpoint ends one of two endpoints under requests that come one after the other.
func (t *peerTask) endEndpoint(ctx context.Context, kind *proxyKind) (r death, err error) {
	defer t.stopFrom(len(t.processes))
	stays, dies, err := startPair()
	if err != nil {
		return r, err
	}
	defer stays.end()
	defer dies.end()
	p := t.base
	p.Hosts, p.Endpoints = peerHosts(1), []string{stays.address, dies.address}
	running, err := t.startProxy(ctx, kind, p)
	if err != nil {
		return r, err
	}
	c := running.client()
	defer c.close()
	for dies.answers.Load() < 10 {
		if _, err := c.get(ctx, p.Hosts[0]); err != nil {
			return r, err
		}
	}
	dies.end()
	const during = 5 * time.Second
	for began := time.Now(); time.Since(began) < during && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		sent := time.Since(began)
		got, err := c.get(ctx, p.Hosts[0])
		r.asked++
		if err != nil || got.status != http.StatusOK {
			r.lost++
			r.last = sent
		} else {
			r.longest = max(r.longest, time.Since(began)-sent)
		}
	}
	return r, ctx.Err()
}

// An endpoint is one of a backend, in this process.
type endpoint struct {
	address string
	server  *http.Server
	// answers it has given.
	answers atomic.Int64
}

// startPair starts two endpoints with the same port.
func startPair() (first, second *endpoint, err error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, nil, err
	}
	if first, err = startEndpoint("127.0.0.1", ports[0]); err != nil {
		return nil, nil, err
	}
	if second, err = startEndpoint("127.0.0.2", ports[0]); err != nil {
		first.end()
	}
	return first, second, err
}

func startEndpoint(address string, port int) (*endpoint, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("start an endpoint: %w", err)
	}
	e := &endpoint{address: listener.Addr().String()}
	e.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.answers.Add(1)
		// An error is that of a client that is gone.
		_, _ = io.WriteString(w, "hello from the backend\n")
	})}
	go func() {
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "an endpoint:", err)
		}
	}()
	return e, nil
}

// end closes the endpoint and all of its connections: the kernel refuses new ones.
func (e *endpoint) end() { _ = e.server.Close() }
