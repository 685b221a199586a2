// Package clustertest gives tests a real Kubernetes of one node.
//
// The cluster is the program in test/cluster, a child of the test process in
// network, process and mount namespaces of its own; it ends with the test
// process, however that ends. Its network has no way out and no way in but
// [Cluster.Dial], [Cluster.Listen] and [Cluster.Command]. It needs root.
//
// The package knows Kubernetes and the test backend, but not Headgate.
package clustertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The addresses in the cluster's network.
const (
	// NodeAddress is the node's address, which pods reach too. Listeners on a
	// wildcard address in the cluster's network answer here.
	NodeAddress = "10.244.0.1"
	// LocalRange is the node's own too, every address of it: one listener on a
	// wildcard address answers for four million endpoints of a test's EndpointSlices.
	LocalRange = "10.128.0.0/10"
)

// LocalAddress is an address of LocalRange by its number, from 1.
func LocalAddress(number int) string {
	address := netip.MustParsePrefix(LocalRange).Addr()
	for range number {
		address = address.Next()
	}
	return address.String()
}

// startLimit bounds the time from start to a usable cluster, beside the time
// that building the program takes.
const startLimit = 6 * time.Minute

// Options choose what runs. The zero value runs everything.
type Options struct {
	// WithoutPods leaves out the kubelet, containerd, the scheduler and
	// kube-proxy: no pod runs and no Service has an address that answers.
	// Objects and controllers work as usual.
	WithoutPods bool
}

// A Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	dir     string
	process *exec.Cmd
	input   io.Closer     // closing it ends the cluster
	ended   chan struct{} // closed when the process has ended
	network *network
	config  *rest.Config
	client  *kubernetes.Clientset
	// withoutPods is why no pod runs, nil if pods do.
	withoutPods error
}

// New builds the cluster's program if needed, which takes minutes, and starts
// it. The cluster outlives ctx; the caller must call Close. With pods it comes
// with the image of the test backend (see [BackendDeployment]).
func New(ctx context.Context, options Options) (*Cluster, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("a cluster needs root, for its namespaces")
	}
	root, err := repository()
	if err != nil {
		return nil, err
	}
	program, err := buildProgram(ctx, root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "headgate-cluster-")
	if err != nil {
		return nil, fmt.Errorf("starting the cluster: %w", err)
	}
	c := &Cluster{dir: dir, ended: make(chan struct{})}
	if options.WithoutPods {
		c.withoutPods = errors.New("the test started its cluster without pods")
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := c.start(ctx, program, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the cluster: %w", err), c.Close())
	}
	if options.WithoutPods {
		return c, nil
	}
	if err := c.loadBackend(ctx, root); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// NeedPods fails the test, with the reason, if no pod runs in the cluster.
func (c *Cluster) NeedPods(t testing.TB) {
	t.Helper()
	if c.withoutPods != nil {
		t.Fatalf("the test needs pods: %v", c.withoutPods)
	}
}

// Start is New and, at the end of the test, Close. The logs of a failed test's
// cluster are kept.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	c, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keep := t.Failed()
		if err := c.end(keep); err != nil {
			t.Error(err)
		}
		if keep {
			t.Log("the cluster's logs are in " + c.LogDir())
		}
	})
	return c
}

func (c *Cluster) start(ctx context.Context, program string, options Options) error {
	ready, err := c.run(program, options)
	if err != nil {
		return err
	}
	select {
	case <-ready:
	case <-c.ended:
		return errors.New(c.lastWords())
	case <-ctx.Done():
		return fmt.Errorf("%w; %s", ctx.Err(), c.lastWords())
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("reading the process ID: %w", err)
	}
	if c.network, err = openNetwork(pid); err != nil {
		return err
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return err
	}
	c.config.Dial = c.Dial
	// No rate limit: it would only slow tests down.
	c.config.QPS = -1
	c.client, err = kubernetes.NewForConfig(c.config)
	return err
}

// run starts the program. The channel is closed when the cluster can be used.
func (c *Cluster) run(program string, options Options) (<-chan struct{}, error) {
	if err := os.MkdirAll(c.LogDir(), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(c.LogDir(), "cluster.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, "up", "--until-eof", "--dir="+c.dir, "--pods="+strconv.FormatBool(!options.WithoutPods))
	cmd.Stderr = log
	// A Ctrl-C is for the test process, whose end ends the cluster.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.process, c.input = cmd, input
	ready := make(chan struct{})
	go func() {
		defer close(c.ended)
		if line, err := bufio.NewReader(output).ReadString('\n'); err == nil && line == "ready\n" {
			close(ready)
		}
		// Its log says how it ended.
		_ = cmd.Wait()
	}()
	return ready, nil
}

// lastWords returns the end of the program's output.
func (c *Cluster) lastWords() string {
	text, err := os.ReadFile(filepath.Join(c.LogDir(), "cluster.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "it said:\n" + strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// Close ends the cluster and removes all traces of it. Programs that
// [Cluster.Command] started are the caller's to end.
func (c *Cluster) Close() error { return c.end(false) }

func (c *Cluster) end(keepLogs bool) error {
	var errs []error
	if c.network != nil {
		errs = append(errs, c.network.close())
	}
	if c.process != nil {
		errs = append(errs, c.input.Close(), c.waitEnd())
	}
	if !keepLogs {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending the cluster: %w", err)
	}
	return nil
}

func (c *Cluster) waitEnd() error {
	select {
	case <-c.ended:
	case <-time.After(30 * time.Second):
		return errors.Join(errors.New("it did not end within 30 seconds"), c.process.Process.Kill())
	}
	if c.process.ProcessState.Success() {
		return nil
	}
	return fmt.Errorf("%v; %s", c.process.ProcessState, c.lastWords())
}

// Ended is closed when the cluster has ended, as it also does by itself when
// one of its components dies.
func (c *Cluster) Ended() <-chan struct{} { return c.ended }

// Program is the path of the cluster's program. With the name kubectl it is kubectl.
func (c *Cluster) Program() string { return c.process.Path }

// Kubeconfig is the path of the administrator's kubeconfig. Its server answers
// in the cluster's network only.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "pki", "admin.kubeconfig") }

// LogDir is the directory with one log a component.
func (c *Cluster) LogDir() string { return filepath.Join(c.dir, "log") }

// PodLog opens the log of the only container of a pod, in the format of the container runtime.
// It can be read while the API server is away, and until it is closed, even when the pod is gone.
func (c *Cluster) PodLog(namespace, pod string) (*os.File, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "pod-log", namespace+"_"+pod+"_*", "*", "0.log"))
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("the pod %s has %d logs", pod, len(files))
	}
	return os.Open(files[0])
}

// Config returns a copy of the administrator's client configuration, which
// works in the test process and has no limit on requests.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns the administrator's client.
func (c *Cluster) Client() *kubernetes.Clientset { return c.client }
