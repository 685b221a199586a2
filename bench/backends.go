package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed protocols.conf.tmpl
var protocolsTemplate string

// A backendRow is a way in which requests meet their backends: an Ingress with
// annotations, and what the NGINX by hand has for the same work.
type backendRow struct {
	name        string
	annotations []string
	// backend is what its Service has: four, secure, closing or grpc.
	backend string
	headers []string
	// grpc sends unary calls over HTTP/2 and TLS.
	grpc bool
	// dear: fewer requests are counted.
	dear bool
	// like names the row whose NGINX by hand this one is compared with, empty for its
	// own. method and pass are what that has for peers and location.
	like         string
	method, pass string
	copies       bool
}

// plainRow is the one that others are compared with for which NGINX has nothing.
const plainRow = "four endpoints in turn"

var backendRows = []backendRow{
	{name: plainRow, backend: "four"},
	{name: "ewma", backend: "four", annotations: []string{"load-balance: ewma"}, like: plainRow},
	{name: "least_conn", backend: "four", annotations: []string{"load-balance: least_conn"}, method: "least_conn;"},
	{name: "random", backend: "four", annotations: []string{"load-balance: random"}, method: "random two least_conn;"},
	{name: "upstream-hash-by", backend: "four", annotations: []string{"upstream-hash-by: $request_uri"}, method: "hash $request_uri consistent;"},
	{name: "upstream-hash-by, a subset", backend: "four", like: "upstream-hash-by",
		annotations: []string{"upstream-hash-by: $request_uri", "upstream-hash-by-subset: true", "upstream-hash-by-subset-size: 2"}},
	{name: "affinity, with its cookie", backend: "four", annotations: []string{"affinity: cookie"},
		headers: []string{"Cookie: INGRESSCOOKIE=1700000000.123.45.678901|0123456789abcdef0123456789abcdef"}, method: "hash $cookie_INGRESSCOOKIE consistent;"},
	{name: "affinity, a new session", backend: "four", annotations: []string{"affinity: cookie"}, like: plainRow},
	{name: "HTTPS, kept connections", backend: "secure", annotations: []string{"backend-protocol: HTTPS"}, pass: "proxy_pass https://%s;"},
	{name: "HTTPS, new connections", backend: "closing", annotations: []string{"backend-protocol: HTTPS"}, pass: "proxy_pass https://%s;", dear: true},
	{name: "gRPC, a unary call", backend: "grpc", annotations: []string{"backend-protocol: GRPC"}, grpc: true, pass: "grpc_pass grpc://%s;"},
	{name: "mirror-target", backend: "four", annotations: []string{"mirror-target: http://web.bench.svc.cluster.local$request_uri"}, copies: true},
}

// addresses are those of the backend with several endpoints.
var addresses = []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"}

// protocols are the ports of backends by several protocols.
type protocols struct {
	four, secure, closing, grpc int
	// end ends the one that runs in this process.
	end func()
}

// A hand is a server of the NGINX by hand for one of the rows.
type hand struct {
	Upstream string
	Port     int
	TLS      bool
	// Zones are directives beside the servers, and Server and Location those within.
	Zones, Peers, Server, Location []string
}

func backendHost(i int) string { return fmt.Sprintf("b-%05d.example.com", i) }

// peer is the index of the row whose NGINX by hand the i-th one is compared with.
func peer(i int) int {
	like := backendRows[i].like
	if like == "" {
		return i
	}
	return slices.IndexFunc(backendRows, func(r backendRow) bool { return r.name == like })
}

// startProtocols starts the NGINX with the backends, on the core of the load.
func (s *stage) startProtocols(ctx context.Context, name string) (protocols, error) {
	fail := func(err error) (protocols, error) {
		return protocols{}, fmt.Errorf("start the backends: %w", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return fail(err)
	}
	pair, err := newCertificate("backend.example.com")
	if err != nil {
		return fail(err)
	}
	if err := s.writeCertificate(name, pair); err != nil {
		return fail(err)
	}
	p := protocols{secure: ports[0], closing: ports[1]}
	values := plainNginx{Addresses: addresses, TLSPort: p.secure, ClosingPort: p.closing}
	pid, port, err := s.startPlain(ctx, name, protocolsTemplate, values)
	if err != nil {
		return fail(err)
	}
	p.four = port
	if p.grpc, p.end, err = startCallee(); err != nil {
		return fail(err)
	}
	return p, pin(pid, loadCore)
}

// startCallee runs a service in this process that answers unary calls of gRPC. NGINX can't
// be one: it would answer before it has the message, and end the stream later.
func startCallee() (port int, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	server := &http.Server{Protocols: &http.Protocols{}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An error is that of a call that ended early.
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = io.WriteString(w, grpcMessage)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().(*net.TCPAddr).Port, func() { _ = server.Close() }, nil
}

// hands are the servers by hand, by the index of their row. The NGINX listens on a port
// for each, so that it looks up no name.
func (p protocols) hands() (map[int]hand, error) {
	ports, err := freePorts(len(backendRows))
	if err != nil {
		return nil, err
	}
	hands := map[int]hand{}
	for i, row := range backendRows {
		if row.like != "" {
			continue
		}
		one := hand{Upstream: fmt.Sprintf("peers%d", i), Port: ports[i], TLS: row.grpc}
		if row.method != "" {
			one.Peers = append(one.Peers, row.method)
		}
		switch row.backend {
		case "four":
			for _, address := range addresses {
				one.Peers = append(one.Peers, fmt.Sprintf("server %s:%d;", address, p.four))
			}
		default:
			one.Peers = append(one.Peers, fmt.Sprintf("server 127.0.0.1:%d;", p.ports()[row.backend]))
		}
		if row.pass == "" {
			row.pass = "proxy_pass http://%s;"
		}
		if strings.Contains(row.pass, "https:") {
			one.Location = append(one.Location, "proxy_ssl_session_reuse off;", "proxy_ssl_protocols TLSv1.2 TLSv1.3;")
		}
		if row.copies {
			one.Location = append(one.Location, "mirror /copy;")
			one.Server = append(one.Server, "location = /copy { internal; proxy_pass http://web$request_uri; }")
		}
		one.Location = append(one.Location, fmt.Sprintf(row.pass, one.Upstream))
		hands[i] = one
	}
	return hands, nil
}

func (p protocols) ports() map[string]int {
	return map[string]int{"four": p.four, "secure": p.secure, "closing": p.closing, "grpc": p.grpc}
}

// writeBackends writes the manifests of the rows.
func writeBackends(folder string, p protocols) error {
	files := map[string]string{"options": configMap(false, keepConnections)}
	for i, row := range backendRows {
		// Each has a Service of its own: settings of a backend apply to all that use it.
		name := fmt.Sprintf("backend-%d", i)
		text := strings.ReplaceAll(service(p.ports()[row.backend]), "name: web", "name: "+name)
		if row.backend == "four" {
			text = strings.Replace(text, "{addresses: [127.0.0.1]}", "{addresses: ["+strings.Join(addresses, "]}, {addresses: [")+"]}", 1)
		}
		files[name] = text + "---\n" +
			strings.ReplaceAll(ingress(name, backendHost(i), annotated(row.annotations)), "service: {name: web,", "service: {name: "+name+",")
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the manifests of backends: %w", err)
		}
	}
	return nil
}

// prepareBackends starts the backends, and writes the folder of a Headgate with all rows.
func (s *stage) prepareBackends(ctx context.Context, name string) (place, protocols, error) {
	p, err := s.startProtocols(ctx, name+"-protocols")
	if err != nil {
		return place{}, p, err
	}
	at, err := s.place(name)
	if err != nil {
		return at, p, err
	}
	return at, p, errors.Join(writeFolder(at.folder, 1, s.backend, false, exactRouting), writeBackends(at.folder, p))
}

// byHand writes what the NGINX by hand of all rows is made of. at is the place of a
// Headgate that runs, of which it has the settings of TLS.
func (s *stage) byHand(name string, at place, p protocols) (plainNginx, map[int]hand, error) {
	fail := func(err error) (plainNginx, map[int]hand, error) {
		return plainNginx{}, nil, fmt.Errorf("prepare the NGINX by hand: %w", err)
	}
	pair, err := newCertificate("hand.example.com")
	if err != nil {
		return fail(err)
	}
	settings, err := s.copyTLS(name, pair, &headgate{runDir: at.runDir})
	if err != nil {
		return fail(err)
	}
	ports, err := freePorts(1)
	if err != nil {
		return fail(err)
	}
	hands, err := p.hands()
	if err != nil {
		return fail(err)
	}
	return plainNginx{Backend: s.backend, KeepsConnections: true, TLS: settings, TLSPort: ports[0], Hands: hands}, hands, nil
}

// measureBackends compares each row with the NGINX by hand.
func measureBackends(ctx context.Context, s *stage, n size) ([]CPURow, error) {
	defer s.stopFrom(len(s.processes))
	at, p, err := s.prepareBackends(ctx, "backends")
	if err != nil {
		return nil, err
	}
	defer p.end()
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return nil, err
	}
	const name = "static-backends"
	values, hands, err := s.byHand(name, at, p)
	if err != nil {
		return nil, err
	}
	pid, _, err := s.startPlain(ctx, name, staticTemplate, values)
	if err != nil {
		return nil, fmt.Errorf("start the NGINX by hand: %w", err)
	}
	bases := map[int]*side{}
	var rows []comparison
	for i, row := range backendRows {
		ours := h.port
		if row.grpc {
			ours = h.https
		}
		sideOf := func(name string, port, worker int) *side {
			return &side{name: name, instance: instance{port: port, worker: worker}, host: backendHost(i), headers: row.headers, http2: row.grpc, grpc: row.grpc}
		}
		j := peer(i)
		if bases[j] == nil {
			bases[j] = sideOf("by hand: "+row.name, hands[j].Port, pid)
		}
		rows = append(rows, comparison{"backends: " + row.name, bases[j], sideOf(row.name, ours, h.worker), 0})
	}
	return s.takeTurns(ctx, "backends", rows, n)
}

// backendKinds are in the order of the rows.
func backendKinds() []requestKind {
	var kinds []requestKind
	for i, row := range backendRows {
		kinds = append(kinds, requestKind{
			name: row.name, host: always(backendHost(i)), headers: row.headers, feature: true, hand: backendRows[peer(i)].name,
			tls: row.grpc, http2: row.grpc, grpc: row.grpc, dear: row.dear,
		})
	}
	return kinds
}

// countBackends counts what differs by the backend, and the same by hand.
func (s *stage) countBackends(ctx context.Context, name, profiles string, counted Instructions) error {
	defer s.stopFrom(len(s.processes))
	at, p, err := s.prepareBackends(ctx, name)
	if err != nil {
		return err
	}
	defer p.end()
	c, stop, err := s.startCounter(ctx, at)
	if err != nil {
		return err
	}
	defer stop()
	values, hands, err := s.byHand(name+"-by-hand", at, p)
	if err != nil {
		return err
	}
	hand, end, err := s.startCountedByHand(ctx, name+"-by-hand", values)
	if err != nil {
		return err
	}
	defer end()
	kinds := backendKinds()
	for i, one := range hands {
		kind := kinds[i]
		kind.name = "by hand: " + kind.name
		at := counter{dir: hand.dir, dump: hand.dump, profiles: profiles, port: one.Port, https: one.Port}
		if counted.Hands[kinds[i].name], err = at.count(kind); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	c.profiles = profiles
	return c.countAll(kinds, counted.Kinds)
}
