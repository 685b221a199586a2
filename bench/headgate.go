package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An instance is an NGINX that can be put under load.
type instance struct {
	port   int
	worker int
}

// A headgate is a running Headgate.
type headgate struct {
	instance
	https   int
	dial    dialer
	web     *http.Client
	process *process
	health  int
	folder  string
	runDir  string
	// ready is the time from its start until /healthz said yes.
	ready time.Duration
}

// A place is where a Headgate runs: another one in the same place, later,
// has the same ports and directories.
type place struct {
	name, folder, runDir string
	http, https, health  int
}

// arguments are those of a Headgate that runs there.
func (at place) arguments() []string {
	return []string{
		"--run-dir", at.runDir, "--http-port", strconv.Itoa(at.http), "--https-port", strconv.Itoa(at.https),
		"--healthz-port", strconv.Itoa(at.health), "--profiling=false", "--default-server-port", "0", "--status-port", "0", "--configmap", namespace + "/headgate",
	}
}

func (s *stage) place(name string) (place, error) {
	ports, err := freePorts(3)
	if err != nil {
		return place{}, err
	}
	return place{
		name: name, folder: filepath.Join(s.dir, name+"-manifests"), runDir: filepath.Join(s.dir, name+"-run"),
		http: ports[0], https: ports[1], health: ports[2],
	}, nil
}

// startHeadgate starts Headgate on a folder and waits until it is ready.
func (s *stage) startHeadgate(ctx context.Context, at place) (*headgate, error) {
	return s.launch(ctx, at, loopback, func(args ...string) (*process, error) {
		return s.start(at.name, s.headgate, slices.Concat(args, []string{"--manifests-dir", at.folder}, s.arguments)...)
	})
}

// launch starts Headgate, adding to the arguments, and waits until it is ready, with its one worker.
func (s *stage) launch(ctx context.Context, at place, dial dialer, start func(...string) (*process, error)) (*headgate, error) {
	h, err := begin(ctx, at, dial, start)
	if err != nil {
		return nil, err
	}
	h.worker, err = worker(filepath.Join(at.runDir, "nginx.pid"))
	return h, err
}

// begin starts a Headgate that may have no NGINX, and waits until it is ready.
func begin(ctx context.Context, at place, dial dialer, start func(...string) (*process, error)) (*headgate, error) {
	h := &headgate{
		instance: instance{port: at.http}, https: at.https, dial: dial, health: at.health, folder: at.folder, runDir: at.runDir,
		web: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: requestTimeout},
	}
	began := time.Now()
	var err error
	h.process, err = start(at.arguments()...)
	if err != nil {
		return nil, err
	}
	err = h.process.until(ctx, "ready", func() bool {
		response, err := h.web.Get("http://" + local(at.health) + "/healthz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	if err != nil {
		return nil, fmt.Errorf("start Headgate: %w", err)
	}
	h.ready = time.Since(began)
	return h, nil
}

func (h *headgate) client() *client { return &client{dial: h.dial, port: h.port} }

// conf is the nginx.conf in use.
func (h *headgate) conf() (string, error) {
	text, err := os.ReadFile(filepath.Join(h.runDir, "nginx.conf"))
	return string(text), err
}

func (h *headgate) socket() string { return filepath.Join(h.runDir, "sock", "api.sock") }

// reloads reads the number of NGINX's reloads.
func (h *headgate) reloads() (int, error) {
	response, err := h.web.Get("http://" + local(h.health) + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "headgate_reloads_total "); found {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("/metrics does not have headgate_reloads_total")
}
