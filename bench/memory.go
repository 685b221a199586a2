package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A memory is what an NGINX takes, in bytes.
type memory struct {
	// master is private to the master process, whose pages workers share until they write.
	master int64
	// worker is a worker's own.
	worker int64
}

// measureMemory prints what client certificates and ModSecurity take in NGINX.
func measureMemory(ctx context.Context, s *stage, to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "memory\tmaster\tworker's own")
	show := func(name string, m memory) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", name, mebibytes(m.master), mebibytes(m.worker))
	}
	if err := s.clientMemory(ctx, show); err != nil {
		return fmt.Errorf("client certificates: %w", err)
	}
	if err := s.ruleMemory(ctx, show); err != nil {
		return fmt.Errorf("ModSecurity: %w", err)
	}
	return table.Flush()
}

// memoryOf reads what an NGINX with one worker takes.
func memoryOf(pidFile string) (m memory, err error) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return m, err
	}
	master, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return m, fmt.Errorf("read %s: %w", pidFile, err)
	}
	pid, err := worker(pidFile)
	if err != nil {
		return m, err
	}
	if m.master, err = status(master, "RssAnon"); err != nil {
		return m, err
	}
	m.worker, err = privateMemory(pid)
	return m, err
}

// clientMemory shows both sides with hosts that verify clients, before their first handshake
// and when all hosts had several.
func (s *stage) clientMemory(ctx context.Context, show func(string, memory)) error {
	pair, err := newCertificate("*.tls.example.com")
	if err != nil {
		return err
	}
	h, static, clients, err := s.startForClients(ctx, pair, 1)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		side    *side
		pidFile string
	}{
		{&side{name: "by hand", instance: static}, filepath.Join(s.dir, "static-clients", "nginx.pid")},
		{&side{name: "Headgate", instance: instance{port: h.https}}, filepath.Join(h.runDir, "nginx.pid")},
	} {
		for _, step := range []struct {
			name    string
			clients []clientCertificate
		}{
			{"before the first handshake", nil},
			{"with a host of 1,000 authorities", []clientCertificate{bundled(clients)}},
			{"and 1,000 hosts of one authority each", clients},
		} {
			if err := one.side.shakeAll(step.clients); err != nil {
				return err
			}
			m, err := memoryOf(one.pidFile)
			if err != nil {
				return err
			}
			show(one.side.name+", "+step.name, m)
		}
	}
	return nil
}

// shakeAll has each client make several handshakes.
func (s *side) shakeAll(clients []clientCertificate) error {
	const times = 3
	for range times {
		for _, client := range clients {
			config := shakeConfig(client.host)
			config.Certificates = []tls.Certificate{*client.pair}
			one := *s
			one.clients = clients
			if _, err := shake(&one, config); err != nil {
				return fmt.Errorf("%s: handshake for %s: %w", s.name, client.host, err)
			}
		}
	}
	return nil
}

// ruleMemory shows Headgate with ModSecurity in one and in several profiles.
func (s *stage) ruleMemory(ctx context.Context, show func(string, memory)) error {
	const several = 11
	inspect, core := "enable-modsecurity: true", "enable-owasp-core-rules: true"
	for i, one := range []struct {
		name        string
		profiles    int
		annotations []string
	}{
		{"without rules", 1, nil},
		{"11 profiles without rules", several, nil},
		{"Headgate's rules", 1, []string{inspect}},
		{"11 profiles with Headgate's rules", several, []string{inspect}},
		{"the core rules", 1, []string{inspect, core}},
		{"11 profiles with the core rules", several, []string{inspect, core}},
	} {
		m, err := s.ruleMemoryOf(ctx, fmt.Sprintf("rules-%d", i), one.profiles, one.annotations)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		show(one.name, m)
	}
	return nil
}

// ruleMemoryOf is what NGINX takes when all profiles had requests.
func (s *stage) ruleMemoryOf(ctx context.Context, name string, profiles int, annotations []string) (m memory, err error) {
	at, err := s.place(name)
	if err != nil {
		return m, err
	}
	if err := writeFolder(at.folder, 1, s.backend, false, exactRouting); err != nil {
		return m, err
	}
	host := func(i int) string { return fmt.Sprintf("m-%05d.example.com", i) }
	for i := range profiles {
		name := fmt.Sprintf("profile-%d", i)
		text := ingress(name, host(i), annotated(append([]string{fmt.Sprintf("proxy-buffer-size: %dk", 8<<i)}, annotations...)))
		if err := os.WriteFile(filepath.Join(at.folder, name+".yaml"), []byte(text), 0o644); err != nil {
			return m, fmt.Errorf("write the manifests of profiles: %w", err)
		}
	}
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return m, err
	}
	defer h.process.stop()
	c := h.client()
	defer c.close()
	const requests = 200
	for range requests {
		for i := range profiles {
			got, err := c.get(ctx, host(i))
			if err == nil && got.status >= 400 {
				err = errors.New("status " + strconv.Itoa(got.status))
			}
			if err != nil {
				return m, err
			}
		}
	}
	return memoryOf(filepath.Join(h.runDir, "nginx.pid"))
}
