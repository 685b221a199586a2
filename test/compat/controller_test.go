package compat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

const (
	class           = "nginx"
	controllerClass = "k8s.io/ingress-nginx"
	namespace       = "ingress-nginx"
	configMap       = namespace + "/ingress-nginx-controller"
	healthz         = clustertest.NodeAddress + ":10254"
	// resolver is the address at which the runner's echo serves names.
	resolver = "10.250.0.53"
)

const (
	startLimit = 20 * time.Second
	syncLimit  = 10 * time.Second
	// requestLimit is how long NGINX may finish its requests when it stops. A case
	// may leave requests that never end.
	requestLimit = 2 * time.Second
	stopLimit    = 20 * time.Second
)

// A controller is Headgate in the cluster's network, with the names of the
// corpus. It is started again and again, with other flags.
type controller struct {
	cluster *clustertest.Cluster
	// program is Headgate, and nginx the NGINX for it to run.
	program, nginx string
	dir            string
	health         *http.Client

	mu sync.Mutex
	// running are the processes: one, or a control and an edge.
	running []*process
}

// A process is one of Headgate.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// newController makes a controller that does not run yet, and what it needs.
func newController(t *testing.T) *controller {
	t.Helper()
	dir, err := os.MkdirTemp("", "headgate-compat-")
	if err != nil {
		t.Fatal(err)
	}
	// NGINX's workers need access to the run directory.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs are in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := &controller{dir: dir, program: filepath.Join(dir, "headgate"), nginx: nginxOfRecordings(t)}
	if output, err := exec.Command("go", "build", "-o", c.program, "../../cmd/headgate").CombinedOutput(); err != nil {
		t.Fatalf("building headgate: %s", output)
	}
	if err := os.WriteFile(c.file("resolv.conf"), []byte("nameserver "+resolver+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.cluster = shared.Start(t)
	if isSplit() {
		c.issue(t)
	}
	c.createObjects(t)
	transport := c.cluster.Transport(healthz)
	transport.DisableKeepAlives = true
	c.health = &http.Client{Transport: transport, Timeout: time.Second}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// nginxOfRecordings is $HEADGATE_NGINX, or Debian 13's.
func nginxOfRecordings(t *testing.T) string {
	t.Helper()
	path := os.Getenv("HEADGATE_NGINX")
	if path == "" {
		path = "../../scripts/debian13-nginx"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(path, "-v").CombinedOutput(); err != nil {
		t.Fatalf("%s -v: %v: %s (scripts/debian13-nginx --install makes it)", path, err, output)
	}
	return path
}

func (c *controller) createObjects(t *testing.T) {
	t.Helper()
	ctx, client := t.Context(), c.cluster.Client()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.NetworkingV1().IngressClasses().Create(ctx, &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: networkingv1.IngressClassSpec{Controller: controllerClass},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *controller) file(name string) string { return filepath.Join(c.dir, name) }

// withNames runs a command that sees its first argument as /etc/resolv.conf,
// in the root of Debian 13's NGINX too.
const withNames = `
for file in /etc/resolv.conf /var/cache/headgate/debian13/etc/resolv.conf; do
	[ ! -e "$file" ] || mount --bind "$1" "$file" || exit
done
shift
exec "$@"`

// restart ends the controller, if it runs, and starts it with these flags in
// addition to its usual ones. It returns when the controller is ready.
func (c *controller) restart(flags []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.end(); err != nil {
		return err
	}
	own := []string{"--run-dir", c.file("run")}
	if isSplit() {
		control, edge := c.halves()
		if err := c.start(append(control, flags...)); err != nil {
			return err
		}
		own = append(edge, own...)
	}
	if err := c.start(append(own, flags...)); err != nil {
		return err
	}
	return c.awaitReady(flags)
}

// start starts a process with these flags in addition to its usual ones.
func (c *controller) start(flags []string) error {
	log, err := os.OpenFile(c.file("headgate.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"--mount", "--propagation", "private", "sh", "-c", withNames, "sh", c.file("resolv.conf"), c.program}
	if !strings.HasPrefix(flags[0], "-") {
		args, flags = append(args, flags[0]), flags[1:]
	}
	args = append(append(args,
		"--kubeconfig", c.cluster.Kubeconfig(), "--configmap", configMap, "--publish-status-address", "192.0.2.10",
		"--controller-class", controllerClass, "--ingress-class", class, "--post-shutdown-grace-period", "0",
	), flags...)
	// The controller outlives the request that asks for it.
	cmd := c.cluster.Command(context.Background(), "unshare", args...)
	cmd.Env = append(cmd.Env, "HEADGATE_NGINX="+c.nginx)
	// Should the test process die, the controller ends its NGINX.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		// cmd.ProcessState has the exit status.
		_ = cmd.Wait()
	}()
	c.running = append(c.running, p)
	return nil
}

// awaitReady waits until the health check succeeds.
func (c *controller) awaitReady(flags []string) error {
	path := "/healthz"
	for _, flag := range flags {
		if value, found := strings.CutPrefix(flag, "--health-check-path="); found {
			path = value
		}
	}
	for deadline := time.Now().Add(startLimit); ; time.Sleep(20 * time.Millisecond) {
		response, err := c.health.Get("http://" + healthz + path)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(response.Status)
		}
		for _, p := range c.running {
			select {
			case <-p.ended:
				return fmt.Errorf("headgate ended: %v", p.cmd.ProcessState)
			default:
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("headgate is not ready: %w", err)
		}
	}
}

// awaitSynced waits until NGINX serves all changes that the API server has sent.
func (c *controller) awaitSynced() error {
	for deadline := time.Now().Add(syncLimit); ; time.Sleep(20 * time.Millisecond) {
		synced, err := c.synced()
		if synced {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("headgate_synced is not 1 after %v", syncLimit), err)
		}
	}
}

func (c *controller) synced() (bool, error) {
	if isSplit() {
		// First the control: its edge has what it has taken then.
		if synced, err := c.gauges(controlHealthz, "headgate_synced 1"); !synced {
			return false, err
		}
	}
	return c.gauges(healthz, "headgate_synced 1", "headgate_waiting_hosts 0")
}

// gauges reports whether metrics have these lines.
func (c *controller) gauges(at string, lines ...string) (bool, error) {
	response, err := c.health.Get("http://" + at + "/metrics")
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	for _, line := range lines {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			return false, err
		}
	}
	return true, err
}

func (c *controller) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end()
}

// end ends the controller, if it runs, that which has NGINX first.
func (c *controller) end() error {
	var errs []error
	for _, p := range slices.Backward(c.running) {
		errs = append(errs, c.endProcess(p))
	}
	c.running = nil
	return errors.Join(errs...)
}

func (c *controller) endProcess(p *process) error {
	for _, limit := range []time.Duration{requestLimit, stopLimit} {
		// The second signal ends NGINX at once. Without a process it has no effect.
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
			return nil
		case <-time.After(limit):
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return errors.Join(errors.New("headgate did not end on SIGTERM"), c.endOrphan())
}

// endOrphan kills the process group of an NGINX without a controller.
func (c *controller) endOrphan() error {
	text, err := os.ReadFile(filepath.Join(c.file("run"), "nginx.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("NGINX's process ID: %w", err)
	}
	return syscall.Kill(-pid, syscall.SIGKILL)
}
