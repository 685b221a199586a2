package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

const (
	// patience bounds waits for what takes a moment, on a machine that others may
	// hold up for seconds.
	patience = 60 * time.Second
	// answerPatience bounds the wait for one answer.
	answerPatience = 15 * time.Second
	// podPatience bounds waits for pods to start and to end.
	podPatience = 3 * time.Minute
	// soon is how long a change may take to be served when the API server is
	// back: some ten times what it takes.
	soon = 15 * time.Second
)

// The addresses at which clients of the cluster find Headgate.
const (
	httpAddress    = clustertest.NodeAddress + ":80"
	httpsAddress   = clustertest.NodeAddress + ":443"
	healthzAddress = clustertest.NodeAddress + ":10254"
)

// A gate is Headgate in the cluster's network, for the one IngressClass of its
// test: what the namespaces of other tests hold is not its own.
type gate struct {
	t       *testing.T
	cluster *clustertest.Cluster
	// class is the name of the IngressClass, and of the test's namespace.
	class string
	args  []string
	// env is added to the controller's environment.
	env []string
	// dir has the run directory and the logs.
	dir string

	cmd   *exec.Cmd
	ended chan struct{}
	// orphaned: the controller was killed, and its NGINX is there.
	orphaned bool
	clients  map[string]*http.Client // by address
}

// newGate makes a Headgate that does not run yet, and its namespace.
func newGate(t *testing.T, flags ...string) *gate {
	t.Helper()
	cluster := shared.Start(t)
	class := cluster.Namespace(t)
	dir, err := os.MkdirTemp("", "headgate-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	// NGINX's workers have to get to the run directory.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	g := &gate{t: t, cluster: cluster, class: class, dir: dir, clients: map[string]*http.Client{}}
	g.args = append([]string{
		"--kubeconfig", cluster.Kubeconfig(), "--run-dir", filepath.Join(dir, "run"),
		"--controller-class", controllerClass(class), "--ingress-class", class, "--post-shutdown-grace-period", "0",
	}, flags...)
	for _, address := range []string{httpAddress, httpsAddress, healthzAddress} {
		transport := cluster.Transport(address)
		// Each request is one of a new client.
		transport.DisableKeepAlives = true
		transport.TLSClientConfig = anyCertificate()
		g.clients[address] = &http.Client{Transport: transport, Timeout: answerPatience, CheckRedirect: stay}
	}
	t.Cleanup(g.leave)
	return g
}

// startGate starts Headgate and waits until it is ready.
func startGate(t *testing.T, flags ...string) *gate {
	t.Helper()
	g := newGate(t, flags...)
	g.createClass(g.class, controllerClass(g.class))
	g.start()
	g.awaitReady()
	return g
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func controllerClass(class string) string { return "headgate.invalid/" + class }

// start starts the controller. Its logs go to files: NGINX may outlive it.
func (g *gate) start() {
	g.t.Helper()
	path, err := controller.path()
	if err != nil {
		g.t.Fatal(err)
	}
	// Not the test's context: that ends before the controller is told to leave.
	g.cmd = g.cluster.Command(context.Background(), path, g.args...)
	g.cmd.Env = append(g.cmd.Env, g.env...)
	// Should the test process die, the controller ends its NGINX.
	g.cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	g.cmd.Stdout, g.cmd.Stderr = g.file("access.log"), g.file("headgate.log")
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	cmd, ended := g.cmd, make(chan struct{})
	g.ended = ended
	go func() {
		defer close(ended)
		// How it ended stands in cmd.ProcessState.
		_ = cmd.Wait()
	}()
}

func (g *gate) file(name string) *os.File {
	g.t.Helper()
	file, err := os.OpenFile(filepath.Join(g.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { file.Close() })
	return file
}

// awaitReady waits until the health check succeeds.
func (g *gate) awaitReady() {
	g.t.Helper()
	clustertest.Eventually(g.t, 2*patience, func(ctx context.Context) error {
		select {
		case <-g.ended:
			g.t.Fatalf("headgate ended: %v", g.cmd.ProcessState)
		default:
		}
		return g.health(ctx)
	})
	g.orphaned = false
}

// health is nil if the health check succeeds.
func (g *gate) health(ctx context.Context) error {
	status, body, err := g.ask(ctx, "/healthz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the health check says %d: %s", status, body)
	}
	return err
}

// awaitNotReady waits until the health check answers, and says no.
func (g *gate) awaitNotReady() {
	g.t.Helper()
	clustertest.Eventually(g.t, patience, func(ctx context.Context) error {
		status, _, err := g.ask(ctx, "/healthz")
		if err == nil && status != http.StatusInternalServerError {
			g.t.Errorf("the health check says %d, want 500", status)
		}
		return err
	})
}

func (g *gate) ask(ctx context.Context, path string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+healthzAddress+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := g.clients[healthzAddress].Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// stop has the controller leave in good order.
func (g *gate) stop() {
	g.t.Helper()
	for _, client := range g.clients {
		// As in the controller: one that was opened and never used holds NGINX.
		client.CloseIdleConnections()
	}
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-g.ended:
	case <-time.After(2 * patience):
		g.t.Error("headgate did not end on SIGTERM")
		// Has it log where its goroutines are.
		_ = g.cmd.Process.Signal(syscall.SIGQUIT)
		<-g.ended
		g.orphaned = true
	}
	if !g.cmd.ProcessState.Success() {
		g.t.Errorf("headgate ended with: %v", g.cmd.ProcessState)
	}
	g.cmd = nil
}

// kill has the controller end at once, without its NGINX.
func (g *gate) kill() {
	g.t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		g.t.Fatal(err)
	}
	<-g.ended
	g.cmd, g.orphaned = nil, true
}

// leave ends all that the test has started; the logs of a failed one stay.
func (g *gate) leave() {
	if g.cmd != nil {
		g.stop()
	}
	if g.orphaned {
		g.endOrphan()
	}
	if g.t.Failed() {
		log := g.log()
		g.t.Logf("logs are in %s; the end of headgate's:\n%s", g.dir, log[max(0, len(log)-40_000):])
		return
	}
	if err := os.RemoveAll(g.dir); err != nil {
		g.t.Error(err)
	}
}

// endOrphan ends an NGINX that has no controller any more, by its group.
func (g *gate) endOrphan() {
	text, err := os.ReadFile(filepath.Join(g.dir, "run", "nginx.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		g.t.Errorf("NGINX's process ID: %v", err)
		return
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// log is what all controllers of the test have said.
func (g *gate) log() string {
	text, err := os.ReadFile(filepath.Join(g.dir, "headgate.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitLog waits for a line of the log that holds all the words.
func (g *gate) awaitLog(words ...string) {
	g.t.Helper()
	clustertest.Eventually(g.t, 2*patience, func(context.Context) error {
	lines:
		for line := range strings.Lines(g.log()) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue lines
				}
			}
			return nil
		}
		return fmt.Errorf("no line of the log has %q", words)
	})
}

// counts are the values of metrics, by name and labels as they are written.
type counts map[string]int

// counts reads the metrics whose names begin with one of the prefixes.
func (g *gate) counts(prefixes ...string) counts {
	g.t.Helper()
	status, body, err := g.ask(g.t.Context(), "/metrics")
	if err != nil || status != http.StatusOK {
		g.t.Fatalf("reading the metrics: status %d: %v", status, err)
	}
	found := counts{}
	for line := range bytes.Lines(body) {
		name, value, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		for _, prefix := range prefixes {
			if !ok || !strings.HasPrefix(name, prefix) {
				continue
			}
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				g.t.Fatalf("reading the metrics: %v", err)
			}
			found[name] = int(number)
		}
	}
	return found
}

const (
	builds  = "headgate_builds_total"
	pushed  = "headgate_pushed_units_total"
	reloads = "headgate_reloads_total"
)

// work is what the controller has done so far.
func (g *gate) work() counts { return g.counts(builds, pushed, reloads) }

// wantWork fails the test unless exactly so much was done since. It is counted a
// moment after clients can see it.
func (g *gate) wantWork(since, want counts) {
	g.t.Helper()
	clustertest.Eventually(g.t, patience, func(context.Context) error {
		done := g.work()
		for name, before := range since {
			done[name] -= before
		}
		maps.DeleteFunc(done, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(done, want) {
			return fmt.Errorf("the work done is %v, want %v", done, want)
		}
		return nil
	})
}

func built(kind string) string { return builds + `{kind="` + kind + `"}` }
func sent(kind string) string  { return pushed + `{kind="` + kind + `"}` }

func (g *gate) wantNoReload() {
	g.t.Helper()
	if n := g.counts(reloads)[reloads]; n != 0 {
		g.t.Errorf("%d reloads, want none", n)
	}
}
