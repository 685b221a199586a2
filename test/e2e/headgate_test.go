package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

const (
	// timeout bounds waits for short operations, on a machine whose other load
	// may delay them for seconds.
	timeout = 60 * time.Second
	// answerTimeout bounds the wait for one answer.
	answerTimeout = 15 * time.Second
	// podTimeout bounds waits for pods to start and to end.
	podTimeout = 3 * time.Minute
	// soon is how long a change may take to be served once the API server is
	// back: about ten times what it usually takes.
	soon = 15 * time.Second
)

// Ports of Headgate.
const (
	httpPort    = "80"
	httpsPort   = "443"
	healthzPort = "10254"
)

// A headgate is an instance in the cluster: a pod of the image, or a process on the node
// (see [headgate.asProcess]). It serves only the IngressClass of its test, so the namespaces of
// other tests don't affect it.
type headgate struct {
	t       *testing.T
	cluster *clustertest.Cluster
	// class is the name of the IngressClass, and of the test's namespace.
	class string
	args  []string
	// env is added to the controller's environment.
	env []string
	// account is its ServiceAccount, an administrator if it is empty.
	account string
	// dir has the logs, and the run directory of a process.
	dir string
	// address is where clients find it: that of the pod that runs, or of the node.
	address string
	clients map[string]*http.Client // by port
	// ended is closed when it has ended, with code.
	ended chan struct{}
	code  int

	pod  string     // the name of the pod that runs
	logs []*os.File // of all pods

	process bool
	cmd     *exec.Cmd
	// orphaned: the controller was killed, and its NGINX still runs.
	orphaned bool
}

// newHeadgate makes an instance that does not run yet, and its namespace.
func newHeadgate(t *testing.T, flags ...string) *headgate {
	t.Helper()
	cluster := shared.Start(t)
	class := cluster.Namespace(t)
	dir, err := os.MkdirTemp("", "headgate-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	// NGINX's workers need access to the run directory.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	h := &headgate{t: t, cluster: cluster, class: class, dir: dir, clients: map[string]*http.Client{}}
	h.args = append([]string{
		"--controller-class", controllerClass(class), "--ingress-class", class, "--post-shutdown-grace-period", "0",
	}, flags...)
	for _, port := range []string{httpPort, httpsPort, healthzPort} {
		transport := cluster.Transport("")
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return cluster.Dial(ctx, network, h.at(port))
		}
		// Each request comes from a new client.
		transport.DisableKeepAlives = true
		transport.TLSClientConfig = anyCertificate()
		h.clients[port] = &http.Client{Transport: transport, Timeout: answerTimeout, CheckRedirect: stay}
	}
	t.Cleanup(h.leave)
	return h
}

// startHeadgate starts Headgate and waits until it is ready.
func startHeadgate(t *testing.T, flags ...string) *headgate {
	t.Helper()
	h := newHeadgate(t, flags...)
	h.createClass(h.class, controllerClass(h.class))
	h.start()
	h.awaitReady()
	return h
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func controllerClass(class string) string { return "headgate.invalid/" + class }

// at is the instance's address with a port.
func (h *headgate) at(port string) string { return net.JoinHostPort(h.address, port) }

// start starts the controller.
func (h *headgate) start() {
	h.t.Helper()
	if h.process {
		h.startProcess()
	} else {
		h.startPod()
	}
}

// awaitReady waits until the health check succeeds.
func (h *headgate) awaitReady() {
	h.t.Helper()
	clustertest.Eventually(h.t, 2*timeout, func(ctx context.Context) error {
		select {
		case <-h.ended:
			h.t.Fatalf("headgate ended with %d", h.code)
		default:
		}
		return h.health(ctx)
	})
	h.orphaned = false
}

// health is nil if the health check succeeds.
func (h *headgate) health(ctx context.Context) error {
	status, body, err := h.ask(ctx, "/healthz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the health check answers %d: %s", status, body)
	}
	return err
}

// awaitNotReady waits until the health check answers, and expects it to fail.
func (h *headgate) awaitNotReady() {
	h.t.Helper()
	clustertest.Eventually(h.t, timeout, func(ctx context.Context) error {
		status, _, err := h.ask(ctx, "/healthz")
		if err == nil && status != http.StatusInternalServerError {
			h.t.Errorf("the health check answers %d, want 500", status)
		}
		return err
	})
}

func (h *headgate) ask(ctx context.Context, path string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://headgate"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := h.clients[healthzPort].Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// stop ends the controller gracefully.
func (h *headgate) stop() {
	h.t.Helper()
	for _, client := range h.clients {
		// As in the controller: an open connection without a request keeps NGINX
		// running.
		client.CloseIdleConnections()
	}
	if h.process {
		h.stopProcess()
	} else {
		h.stopPod()
	}
	if h.code != 0 {
		h.t.Errorf("headgate ended with %d", h.code)
	}
}

// leave ends everything that the test has started. A failed test keeps its logs.
func (h *headgate) leave() {
	if h.cmd != nil {
		h.stop()
	}
	if h.orphaned {
		h.endOrphan()
	}
	// A pod that still runs ends with the namespace.
	if h.t.Failed() {
		log := h.log()
		h.t.Logf("logs are in %s; the end of headgate's:\n%s", h.dir, log[max(0, len(log)-40_000):])
		return
	}
	if err := os.RemoveAll(h.dir); err != nil {
		h.t.Error(err)
	}
}

// log returns the log of all controllers of the test.
func (h *headgate) log() string {
	if !h.process {
		return h.podLogs()
	}
	text, err := os.ReadFile(filepath.Join(h.dir, "headgate.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitLog waits for a line of the log that contains all words.
func (h *headgate) awaitLog(words ...string) {
	h.t.Helper()
	clustertest.Eventually(h.t, 2*timeout, func(context.Context) error {
	lines:
		for line := range strings.Lines(h.log()) {
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

// counts are the values of metrics, by name with labels.
type counts map[string]int

// counts reads the metrics whose names begin with one of the prefixes.
func (h *headgate) counts(prefixes ...string) counts {
	h.t.Helper()
	status, body, err := h.ask(h.t.Context(), "/metrics")
	if err != nil || status != http.StatusOK {
		h.t.Fatalf("reading the metrics: status %d: %v", status, err)
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
				h.t.Fatalf("reading the metrics: %v", err)
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

// work returns the number of builds, pushed units and reloads so far.
func (h *headgate) work() counts { return h.counts(builds, pushed, reloads) }

// wantWork fails the test unless the controller has done exactly this work since
// then. It waits, since the metrics grow shortly after clients see a change.
func (h *headgate) wantWork(since, want counts) {
	h.t.Helper()
	clustertest.Eventually(h.t, timeout, func(context.Context) error {
		done := h.work()
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

func (h *headgate) wantNoReload() {
	h.t.Helper()
	if n := h.counts(reloads)[reloads]; n != 0 {
		h.t.Errorf("%d reloads, want none", n)
	}
}
