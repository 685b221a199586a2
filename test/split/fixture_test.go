// Package split tests a control and edges as programs, and what becomes of requests when one of them, or what is
// between them, fails.
package split_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
	"github.com/headgate/headgate/internal/unit/link"
)

// A place is a folder of manifests with all that controls and edges need of each other.
type place struct {
	t *testing.T
	// binary is Headgate, and root where everything is.
	binary, root string
	authority    *link.Authority
}

// build builds Headgate once for all tests.
func build() (path string, err error) {
	dir, err := os.MkdirTemp("", "hg-split-")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "headgate")
	output, err := exec.Command("go", "build", "-o", path, "../../cmd/headgate").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, output)
	}
	return path, nil
}

var binary = sync.OnceValues(build)

func TestMain(m *testing.M) {
	status := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// newPlace makes one with manifests.
func newPlace(t *testing.T, manifests string) *place {
	t.Helper()
	path, err := binary()
	must(t, err)
	// Names of sockets are short.
	root, err := os.MkdirTemp("/dev/shm", "hg-")
	must(t, err)
	must(t, os.Chmod(root, 0o711))
	t.Cleanup(func() { os.RemoveAll(root) })
	p := &place{t: t, binary: path, root: root}
	must(t, os.Mkdir(filepath.Join(root, "manifests"), 0o755))
	p.authority, err = link.NewAuthority(time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	must(t, err)
	p.write("ca.crt", string(link.EncodeCertificates(p.authority.Certificate)))
	p.issueControl()
	p.apply(manifests)
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.root, name) }

// write replaces a file as a whole.
func (p *place) write(name, text string) {
	p.t.Helper()
	must(p.t, os.WriteFile(p.path("new"), []byte(text), 0o600))
	must(p.t, os.Rename(p.path("new"), p.path(name)))
}

// apply replaces all manifests.
func (p *place) apply(manifests string) {
	p.t.Helper()
	p.write("manifests/all.yaml", manifests)
}

// issueControl makes a new certificate of the control.
func (p *place) issueControl() {
	p.t.Helper()
	c, err := p.authority.Server(time.Now(), time.Hour)
	must(p.t, err)
	p.write("control.crt", string(link.EncodeCertificates(c.Leaf)))
	p.write("control.key", keyText(p.t, c.PrivateKey.(*ecdsa.PrivateKey)))
}

// issueEdge makes a new certificate of an edge.
func (p *place) issueEdge(name, group string) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(p.t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(p.t, err)
	request, err := x509.ParseCertificateRequest(der)
	must(p.t, err)
	c, err := p.authority.Edge(request, link.Identity{Name: name, Group: group}, time.Now(), time.Hour)
	must(p.t, err)
	p.write(name+".crt", string(link.EncodeCertificates(c)))
	p.write(name+".key", keyText(p.t, key))
}

func keyText(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// A process is a control or an edge, which can be started again.
type process struct {
	place *place
	name  string
	flags []string
	env   []string
	// address is that of a control; http, https and healthz are ports.
	address              string
	http, https, healthz uint16
	log                  *headgatetest.Log
	cmd                  *exec.Cmd
	ended                chan struct{}
}

func (p *place) process(command, name string, flags ...string) *process {
	p.t.Helper()
	q := &process{place: p, name: name, http: porttest.Free(p.t), https: porttest.Free(p.t), healthz: porttest.Free(p.t), log: &headgatetest.Log{}}
	q.flags = append([]string{
		command, "--run-dir", p.path(name), "--http-port", fmt.Sprint(q.http), "--https-port", fmt.Sprint(q.https), "--healthz-port", fmt.Sprint(q.healthz),
		"--default-server-port", "0", "--status-port", "0", "--profiling=false", "--configmap", "default/headgate",
	}, flags...)
	p.t.Cleanup(func() {
		if q.cmd != nil {
			q.kill()
		}
		if p.t.Failed() {
			p.t.Logf("the log of %s:\n%s", name, q.log)
		}
	})
	return q
}

// run runs a command that asks the process, and returns all that it prints.
func (q *process) run(args ...string) string {
	q.place.t.Helper()
	// It may fail: what it says then is looked at as well.
	output, _ := exec.CommandContext(q.place.t.Context(), q.place.binary, append(args, "--run-dir", q.place.path(q.name))...).CombinedOutput()
	return string(output)
}

// breakReloads has NGINX refuse each configuration that it is to be reloaded with.
func (q *process) breakReloads() {
	q.place.t.Helper()
	nginx := os.Getenv("HEADGATE_NGINX")
	if nginx == "" {
		nginx = "/usr/sbin/nginx"
	}
	script := q.place.path(q.name + "-nginx")
	must(q.place.t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\ncase \" $* \" in *' -t '*) echo 'nginx: [emerg] this NGINX is broken' >&2; exit 1 ;; esac\nexec %s \"$@\"\n", nginx), 0o755))
	q.env = append(q.env, "HEADGATE_NGINX="+script)
}

// newAuthority replaces that of all certificates. For a while, both are trusted.
func (p *place) newAuthority() {
	p.t.Helper()
	old := p.authority.Certificate
	var err error
	p.authority, err = link.NewAuthority(time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	must(p.t, err)
	p.write("ca.crt", string(link.EncodeCertificates(p.authority.Certificate, old)))
}

// control makes a control that is not started yet.
func (p *place) control(name string, flags ...string) *process {
	p.t.Helper()
	port := porttest.Free(p.t)
	q := p.process("control", name, append([]string{
		"--manifests-dir", p.path("manifests"), "--edge-address", fmt.Sprint("127.0.0.1:", port),
		"--edge-certificate", p.path("control.crt"), "--edge-key", p.path("control.key"), "--edge-ca", p.path("ca.crt"),
	}, flags...)...)
	q.address = fmt.Sprint("127.0.0.1:", port)
	return q
}

// edge makes an edge of a control that is not started yet.
func (p *place) edge(name, control string, flags ...string) *process {
	p.t.Helper()
	p.issueEdge(name, "")
	return p.process("edge", name, append([]string{
		"--control-address", control, "--control-ca", p.path("ca.crt"),
		"--control-certificate", p.path(name + ".crt"), "--control-key", p.path(name + ".key"),
	}, flags...)...)
}

func (q *process) start() *process {
	t := q.place.t
	t.Helper()
	q.cmd = exec.Command(q.place.binary, q.flags...)
	q.cmd.Env = append(append(os.Environ(), "POD_NAME="+q.name), q.env...)
	q.cmd.Stdout, q.cmd.Stderr = q.log, q.log
	// NGINX outlives a crash, and has them too.
	q.cmd.WaitDelay = 100 * time.Millisecond
	must(t, q.cmd.Start())
	ended := make(chan struct{})
	q.ended = ended
	cmd := q.cmd
	go func() {
		defer close(ended)
		// How it ended is of no interest.
		_ = cmd.Wait()
	}()
	return q
}

// signal sends one to the process alone.
func (q *process) signal(s syscall.Signal) {
	// It may have ended already.
	_ = q.cmd.Process.Signal(s)
}

// kill ends the process with all that it has started, as the end of a container does.
func (q *process) kill() {
	q.crash()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(q.place.t, err)
	for _, name := range commands {
		text, err := os.ReadFile(name)
		var pid int
		if _, scanErr := fmt.Sscanf(name, "/proc/%d/", &pid); err == nil && scanErr == nil && strings.Contains(string(text), q.place.path(q.name)+"\x00") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// crash ends the process alone, as a lack of memory would.
func (q *process) crash() {
	q.signal(syscall.SIGKILL)
	<-q.ended
}

// ready waits until the health check is good.
func (q *process) ready() *process {
	q.place.t.Helper()
	q.until("it is ready", func() bool {
		status, _ := q.health()
		return status == http.StatusOK
	})
	return q
}

// health is what the health check says.
func (q *process) health() (status int, text string) {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", q.healthz))
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

const timeout = time.Minute

// until waits until something holds.
func (q *process) until(what string, holds func() bool) {
	t := q.place.t
	t.Helper()
	for deadline := time.Now().Add(timeout); !holds(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-q.ended:
			t.Fatalf("%s ended, and was to be waited for until %s", q.name, what)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: waited in vain until %s", q.name, what)
		}
	}
}

// get asks an edge.
func (q *process) get(host, path string) (status int, body string) {
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", q.http, path), http.NoBody)
	must(q.place.t, err)
	request.Host = host
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: timeout}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// serves waits until an edge answers a host with a status.
func (q *process) serves(host string, want int) {
	q.place.t.Helper()
	q.until(fmt.Sprintf("%s is answered %d", host, want), func() bool {
		status, _ := q.get(host, "/")
		return status == want
	})
}

// A load asks an edge all the time.
type load struct {
	asked, failed atomic.Int64
	last          atomic.Pointer[string]
	end           func()
}

// load asks for a host until the test, or end, stops it.
func (q *process) load(host string) *load {
	l := &load{}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	l.end = func() {
		cancel()
		group.Wait()
	}
	q.place.t.Cleanup(l.end)
	for range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				status, body := q.get(host, "/")
				l.asked.Add(1)
				if status != http.StatusOK {
					l.failed.Add(1)
					l.last.Store(new(fmt.Sprint(status, " ", body)))
				}
				select {
				case <-time.After(2 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	return l
}

// wantNoneLost ends the load.
func (l *load) wantNoneLost(t *testing.T) {
	t.Helper()
	l.end()
	if l.failed.Load() > 0 || l.asked.Load() == 0 {
		t.Errorf("%d of %d requests failed; the last: %s", l.failed.Load(), l.asked.Load(), *l.last.Load())
	}
}

// A cable is a connection to a control that can be cut, or held as a network does that drops everything.
type cable struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     map[net.Conn]struct{}
	// free is closed when nothing is held.
	free chan struct{}
}

// cableTo passes connections on to an address.
func cableTo(t *testing.T, to string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &cable{listener: listener, to: to, open: map[net.Conn]struct{}{}, free: make(chan struct{})}
	close(w.free)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go w.pass(from)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		w.cut()
	})
	return w
}

// lead has new connections go elsewhere.
func (w *cable) lead(to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
}

func (w *cable) address() string { return w.listener.Addr().String() }

func (w *cable) pass(from net.Conn) {
	defer from.Close()
	w.wait()
	w.mu.Lock()
	address := w.to
	w.mu.Unlock()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	w.mu.Lock()
	w.open[from], w.open[to] = struct{}{}, struct{}{}
	w.mu.Unlock()
	var group sync.WaitGroup
	group.Go(func() { w.copy(to, from) })
	group.Go(func() { w.copy(from, to) })
	group.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, from)
	delete(w.open, to)
}

func (w *cable) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.wait()
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

func (w *cable) wait() {
	w.mu.Lock()
	free := w.free
	w.mu.Unlock()
	<-free
}

// hold has nothing get through, on open connections too, until release.
func (w *cable) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = make(chan struct{})
}

func (w *cable) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.free)
}

// cut closes all connections.
func (w *cable) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Close()
	}
}

// one is a backend with an Ingress for a host.
func one(t *testing.T, hosts ...string) string {
	t.Helper()
	text := headgatetest.Service("one") + headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one"))
	for _, host := range hosts {
		text += headgatetest.Ingress(host, host, "/", "one")
	}
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
