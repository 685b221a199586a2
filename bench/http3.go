package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate/headgate/internal/feature"
)

// atOnce is the number of requests at a time over each connection.
const atOnce = 4

// An http3Side is an NGINX that is asked over HTTP/2 or HTTP/3.
type http3Side struct {
	side
	http3 bool
	meter meter
}

// measureHTTP3 compares proxied requests over HTTP/3 with those over HTTP/2, by Headgate and by the
// NGINX by hand, in turns. Clients keep their connections. It prints the medians.
func measureHTTP3(ctx context.Context, s *stage, n size, to io.Writer) error {
	if !slices.Contains(s.nginx.Has, string(feature.HTTP3)) {
		return fmt.Errorf("NGINX %s does not support HTTP/3; $HEADGATE_NGINX names another one, such as scripts/debian13-nginx", s.nginx.Version)
	}
	static, ours, err := s.startForHTTP3(ctx)
	if err != nil {
		return err
	}
	sides := []*http3Side{
		{side: side{name: "by hand, HTTP/2", instance: static, host: plainName}},
		{side: side{name: "by hand, HTTP/3", instance: static, host: plainName}, http3: true},
		{side: side{name: "Headgate, HTTP/2", instance: ours, host: plainName}},
		{side: side{name: "Headgate, HTTP/3", instance: ours, host: plainName}, http3: true},
	}
	if err := inRounds(ctx, n, sides); err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "requests\tµs CPU of the worker\tby HTTP/2 ×\tby hand ×\trequests/s")
	for i, one := range sides {
		costs := one.meter.costs
		fmt.Fprintf(table, "%s\t%.1f\t%.2f\t%.2f\t%.0f\n", one.name, medianOf(costs),
			medianOf(ratiosOf(costs, sides[i&^1].meter.costs)), medianOf(ratiosOf(costs, sides[i&1].meter.costs)), medianOf(one.meter.rates))
	}
	return table.Flush()
}

// startForHTTP3 starts both, with the same certificate and settings of TLS.
func (s *stage) startForHTTP3(ctx context.Context) (static, ours instance, err error) {
	fail := func(err error) (instance, instance, error) {
		return instance{}, instance{}, fmt.Errorf("start NGINX for HTTP/3: %w", err)
	}
	pair, err := newCertificate("*.tls.example.com")
	if err != nil {
		return fail(err)
	}
	at, err := s.place("http3")
	if err != nil {
		return fail(err)
	}
	if err := writeFolder(at.folder, 10, s.backend, false, exactRouting); err != nil {
		return fail(err)
	}
	secured, err := securedIngress(pair)
	if err != nil {
		return fail(err)
	}
	for name, text := range map[string]string{"tls.yaml": secured, "options.yaml": configMap(false, keepConnections, `use-http3: "true"`)} {
		if err := os.WriteFile(filepath.Join(at.folder, name), []byte(text), 0o600); err != nil {
			return fail(err)
		}
	}
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return fail(err)
	}
	const name = "static-http3"
	settings, err := s.copyTLS(name, pair, h)
	if err != nil {
		return fail(err)
	}
	ports, err := freePorts(1)
	if err != nil {
		return fail(err)
	}
	values := plainNginx{Backend: s.backend, KeepsConnections: true, TLS: settings, TLSPort: ports[0], HTTP3: true}
	pid, _, err := s.startPlain(ctx, name, staticTemplate, values)
	if err != nil {
		return fail(err)
	}
	return instance{port: ports[0], worker: pid}, instance{port: h.https, worker: h.worker}, nil
}

// measure asks over several connections for a time.
func (h *http3Side) measure(ctx context.Context, during time.Duration) error {
	return h.meter.take(func() (time.Duration, error) { return cpuTime(h.worker) }, func() (int, error) { return h.ask(ctx, during) })
}

func (h *http3Side) ask(ctx context.Context, during time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	counts, errs := make([]int, shakers*atOnce), make([]error, shakers*atOnce)
	var group sync.WaitGroup
	for i := range shakers {
		client, end := h.client()
		defer end()
		for j := range atOnce {
			number := i*atOnce + j
			group.Go(func() { counts[number], errs[number] = h.askUntil(ctx, client) })
		}
	}
	group.Wait()
	return answered(counts, errs)
}

// client has one connection, for the name of the side wherever requests say that it is.
func (h *http3Side) client() (client *http.Client, end func()) {
	// The benchmark asks only for the host that it made.
	config := &tls.Config{ServerName: h.host, InsecureSkipVerify: true}
	if h.http3 {
		transport := &http3.Transport{TLSClientConfig: config, Dial: func(ctx context.Context, _ string, c *tls.Config, settings *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, local(h.port), c, settings)
		}}
		return &http.Client{Transport: transport}, func() { transport.Close() }
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	transport := &http.Transport{TLSClientConfig: config, Protocols: protocols}
	return &http.Client{Transport: transport}, transport.CloseIdleConnections
}

func (h *http3Side) askUntil(ctx context.Context, client *http.Client) (n int, err error) {
	for ; ctx.Err() == nil; n++ {
		// Without the context: a request under way at the end counts.
		request, err := http.NewRequest(http.MethodGet, "https://"+local(h.port)+"/", nil)
		if err != nil {
			return n, err
		}
		request.Host = h.host
		response, err := client.Do(request)
		if err != nil {
			return n, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil {
			return n, err
		}
		if response.StatusCode != http.StatusOK {
			return n, fmt.Errorf("status %d", response.StatusCode)
		}
	}
	return n, nil
}
