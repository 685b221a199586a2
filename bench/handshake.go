package main

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

//go:embed handshake.conf.tmpl
var handshakeTemplate string

// Names that TLS clients ask for. All show one certificate. With a TLS policy
// anywhere, Lua looks at every client's first message.
const (
	plainName  = "plain.tls.example.com"
	policyName = "policy.tls.example.com"
)

// shakers are the clients that make handshakes at a time.
const shakers = 8

// measureHandshakes compares whole handshakes, without resumption, by an ECDSA
// certificate.
func measureHandshakes(ctx context.Context, s *stage, n size, short bool) ([]CPURow, error) {
	defer s.stopFrom(len(s.processes))
	pair, err := newCertificate("*.tls.example.com")
	if err != nil {
		return nil, err
	}
	h, err := s.startForHandshakes(ctx, "headgate-tls", pair, "", hosts)
	if err != nil {
		return nil, err
	}
	static, err := s.startStaticTLS(ctx, "static-tls", pair, h)
	if err != nil {
		return nil, err
	}
	base := &side{name: "static, TLS", instance: static, host: plainName, handshakes: true}
	of := func(name string, h *headgate, host string) *side {
		return &side{name: name, instance: instance{port: h.https, worker: h.worker}, host: host, handshakes: true}
	}
	rows := []comparison{{"ECDSA, no TLS policy", base, of("headgate, TLS", h, plainName), 1.15}}
	if !short {
		h, err := s.startForHandshakes(ctx, "headgate-policy", pair, "ECDHE-ECDSA-AES128-GCM-SHA256", hosts)
		if err != nil {
			return nil, err
		}
		rows = append(rows,
			comparison{"another host has ciphers of its own", base, of("headgate, phase", h, plainName), 0},
			comparison{"a host with ciphers of its own", base, of("headgate, policy", h, policyName), 0})
		clients, err := s.compareClientCertificates(ctx, pair)
		if err != nil {
			return nil, err
		}
		rows = append(rows, clients...)
	}
	return s.takeTurns(ctx, "handshakes", rows, n)
}

// startForHandshakes starts Headgate with plain hosts and two that show the
// certificate, one of which may have ciphers of its own.
func (s *stage) startForHandshakes(ctx context.Context, name string, pair keyPair, ciphers string, hosts int, more ...string) (*headgate, error) {
	at, err := s.place(name)
	if err != nil {
		return nil, err
	}
	if err := writeFolder(at.folder, hosts, s.backend, false, exactRouting); err != nil {
		return nil, err
	}
	secured, err := securedIngress(pair)
	if err != nil {
		return nil, err
	}
	metadata := ""
	if ciphers != "" {
		metadata = "  annotations: {nginx.ingress.kubernetes.io/ssl-ciphers: \"" + ciphers + "\"}\n"
	}
	manifests := secured + "---\n" + ingress("tls-policy", policyName, metadata) + securedBy(policyName) + strings.Join(more, "")
	if err := os.WriteFile(filepath.Join(at.folder, "tls.yaml"), []byte(manifests), 0o600); err != nil {
		return nil, fmt.Errorf("write the manifests: %w", err)
	}
	return s.startHeadgate(ctx, at)
}

// securedBy is the end of an Ingress's spec.
func securedBy(host string) string {
	return "  tls:\n    - {hosts: [" + host + "], secretName: tls}\n"
}

// securedIngress is an Ingress of plainName with its certificate, as manifests.
func securedIngress(pair keyPair) (string, error) {
	secret := tlsSecret(namespace, "tls", pair)
	secret.APIVersion, secret.Kind = "v1", "Secret"
	text, err := yaml.Marshal(secret)
	if err != nil {
		return "", fmt.Errorf("write the certificate: %w", err)
	}
	return string(text) + "---\n" + ingress("tls-plain", plainName, "") + securedBy(plainName), nil
}

// startStaticTLS starts an NGINX with the certificate and all that Headgate's
// nginx.conf says of TLS. For the hosts of clients, it requires certificates of their authorities.
func (s *stage) startStaticTLS(ctx context.Context, name string, pair keyPair, h *headgate, clients ...clientCertificate) (instance, error) {
	fail := func(err error) (instance, error) {
		return instance{}, fmt.Errorf("start the static NGINX for TLS: %w", err)
	}
	settings, err := s.copyTLS(name, pair, h)
	if err != nil {
		return fail(err)
	}
	values := plainNginx{TLS: settings}
	for _, client := range clients {
		values.Verifying = append(values.Verifying, client.host)
		if err := os.WriteFile(filepath.Join(s.dir, name, client.host+".crt"), client.authorities, 0o600); err != nil {
			return fail(err)
		}
	}
	pid, port, err := s.startPlain(ctx, name, handshakeTemplate, values)
	if err != nil {
		return fail(err)
	}
	return instance{port: port, worker: pid}, nil
}

// copyTLS writes a certificate for the NGINX of that name, and returns what Headgate's
// nginx.conf says of TLS.
func (s *stage) copyTLS(name string, pair keyPair, h *headgate) ([]string, error) {
	conf, err := h.conf()
	if err != nil {
		return nil, err
	}
	var settings []string
	for _, line := range regexp.MustCompile(`(?m)^ +(ssl_(?:protocols|ciphers|prefer|ecdh|session|buffer|early)\w* .*;)$`).FindAllStringSubmatch(conf, -1) {
		settings = append(settings, line[1])
	}
	if len(settings) < 8 {
		return nil, fmt.Errorf("only %d settings of TLS are in the nginx.conf of Headgate", len(settings))
	}
	return settings, s.writeCertificate(name, pair)
}

// writeCertificate writes a certificate for the NGINX of that name. Its directory is there then.
func (s *stage) writeCertificate(name string, pair keyPair) error {
	return errors.Join(
		os.Mkdir(filepath.Join(s.dir, name), 0o711),
		os.WriteFile(filepath.Join(s.dir, name, "tls.crt"), pair.chain, 0o600),
		os.WriteFile(filepath.Join(s.dir, name, "tls.key"), pair.key, 0o600))
}

// shakeHands makes handshakes on the core of the load, and returns how many.
func shakeHands(ctx context.Context, one *side, duration time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var group sync.WaitGroup
	counts, errs := make([]int, shakers), make([]error, shakers)
	for i := range shakers {
		group.Go(func() {
			// Its thread ends with it, and so does the bond to a core.
			runtime.LockOSThread()
			var cores unix.CPUSet
			cores.Set(loadCore)
			if errs[i] = unix.SchedSetaffinity(0, &cores); errs[i] == nil {
				counts[i], errs[i] = shakeUntil(ctx, one, i)
			}
		})
	}
	group.Wait()
	return answered(counts, errs)
}

// answered is how many answers several clients got together.
func answered(counts []int, errs []error) (total int, err error) {
	for _, n := range counts {
		total += n
	}
	if err = errors.Join(errs...); err == nil && total == 0 {
		err = errNoAnswer
	}
	return total, err
}

func shakeConfig(host string) *tls.Config {
	return &tls.Config{
		// The benchmark looks at the certificate itself.
		ServerName: host, InsecureSkipVerify: true,
		// All sides agree on the same.
		MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519},
	}
}

// shakeUntil makes one handshake after the other until the context ends. number is that of
// who makes them.
func shakeUntil(ctx context.Context, one *side, number int) (int, error) {
	config := shakeConfig(one.host)
	if one.resumes {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	full := 0
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			// NGINX may drop a session that it has no memory for.
			if one.resumes && full > 1+n/10 {
				return n, fmt.Errorf("%s: %d of %d handshakes resumed no session", one.name, full, n)
			}
			return n, nil
		}
		if len(one.clients) > 0 {
			client := one.clients[(n*shakers+number)%len(one.clients)]
			config.ServerName, config.Certificates = client.host, []tls.Certificate{*client.pair}
		}
		resumed, err := shake(one, config)
		if err != nil {
			return n, fmt.Errorf("%s: handshake: %w", one.name, err)
		}
		if !resumed {
			full++
		}
	}
}

// shake makes a handshake, and reports whether it resumed a session.
func shake(one *side, config *tls.Config) (resumed bool, err error) {
	plain, err := net.Dial("tcp", local(one.port))
	if err != nil {
		return false, err
	}
	defer plain.Close()
	connection := tls.Client(plain, config)
	if err := connection.Handshake(); err != nil {
		return false, err
	}
	state := connection.ConnectionState()
	if names := state.PeerCertificates; len(names) != 1 || names[0].DNSNames[0] != "*.tls.example.com" {
		return false, errors.New("another certificate was shown")
	}
	if len(one.clients) > 0 {
		err = end(connection)
	}
	return state.DidResume, err
}
