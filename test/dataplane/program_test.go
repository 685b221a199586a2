package dataplane_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// A program is a running bin/headgate on a folder of its own. Its ConfigMap is
// default/headgate.
type program struct {
	t           *testing.T
	cmd         *exec.Cmd
	folder, dir string
	// permit lets NGINX start; waits shows that it was asked to.
	permit, waits                               string
	http, https, healthz, defaultServer, status uint16
	log                                         *headgatetest.Log
	ended                                       chan struct{}
}

// The program as a user starts it.
func TestProgram(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	binary := filepath.Join(t.TempDir(), "headgate")
	if output, err := exec.Command("go", "build", "-o", binary, "../../cmd/headgate").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, output)
	}
	t.Run("health", func(t *testing.T) { checkHealth(t, binary) })
	t.Run("controller hangs", func(t *testing.T) { checkControllerHangs(t, binary) })
	t.Run("logs are not read", func(t *testing.T) { checkLogsAreNotRead(t, binary) })
	t.Run("log reader ends", func(t *testing.T) { checkLogReaderEnds(t, binary) })
	t.Run("long lines", func(t *testing.T) { checkLongLines(t, binary) })
	t.Run("early end", func(t *testing.T) { checkEarlyEnd(t, binary) })
	t.Run("end", func(t *testing.T) { checkEnd(t, binary) })
	t.Run("explain", func(t *testing.T) { checkExplain(t, binary) })
	t.Run("stop under load", func(t *testing.T) { checkStopUnderLoad(t, binary) })
	t.Run("stop with open connections", func(t *testing.T) { checkStopWithOpenConnections(t, binary) })
	t.Run("stop and NGINX dies", func(t *testing.T) { checkStopAndNGINXDies(t, binary) })
	t.Run("second signal", func(t *testing.T) { checkSecondSignal(t, binary) })
	t.Run("certificates", func(t *testing.T) { checkCertificates(t, binary) })
	t.Run("limit store", func(t *testing.T) { checkLimitStore(t, binary) })
	t.Run("metrics", func(t *testing.T) { checkMetrics(t, binary) })
	t.Run("counts", func(t *testing.T) { checkCounts(t, binary) })
	t.Run("families", func(t *testing.T) { checkFamilies(t, binary) })
	t.Run("Prometheus", func(t *testing.T) { checkPrometheus(t, binary) })
	t.Run("tracing", func(t *testing.T) { checkTracing(t, binary) })
	t.Run("findings", func(t *testing.T) { checkFindings(t, binary) })
	t.Run("dbg", func(t *testing.T) { checkDebug(t, binary) })
	t.Run("profiles", func(t *testing.T) { checkProfiles(t, binary) })
	t.Run("log targets", func(t *testing.T) { checkLogTargets(t, binary) })
	t.Run("log file", func(t *testing.T) { checkLogFile(t, binary) })
	t.Run("links", func(t *testing.T) { checkLinks(t, binary) })
	t.Run("ports", func(t *testing.T) { checkPorts(t, binary) })
	t.Run("TCP and UDP services", func(t *testing.T) { checkStreams(t, binary) })
	t.Run("wait-shutdown", func(t *testing.T) { checkWaitShutdown(t, binary) })
	t.Run("TLS passthrough", func(t *testing.T) { checkPassthrough(t, binary) })
	t.Run("TLS passthrough behind a load balancer", func(t *testing.T) { checkPassthroughBehindLoadBalancer(t, binary) })
	t.Run("TLS passthrough and headers", func(t *testing.T) { checkPassthroughAndHeaders(t, binary) })
}

// startProgram runs the program as a user would, with more flags. Its NGINX starts, each time,
// only while the file p.permit is there.
func startProgram(t *testing.T, binary, manifests string, flags ...string) *program {
	t.Helper()
	return startProgramWith(t, binary, nil, nil, manifests, flags...)
}

// startProgramWith runs it with other outputs than p.log.
func startProgramWith(t *testing.T, binary string, stdout, stderr *os.File, manifests string, flags ...string) *program {
	t.Helper()
	p := newProgram(t, binary, manifests, flags...)
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	if stderr != nil {
		p.cmd.Stderr = stderr
	}
	p.start()
	return p
}

// newProgram prepares it.
func newProgram(t *testing.T, binary, manifests string, flags ...string) *program {
	t.Helper()
	root, err := os.MkdirTemp("", "hg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o711); err != nil {
		t.Fatal(err)
	}
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx"
	}
	if named := os.Getenv("HEADGATE_NGINX"); named != "" {
		nginx = named
	}
	p := &program{
		t: t, folder: filepath.Join(root, "manifests"), permit: filepath.Join(root, "permit"), waits: filepath.Join(root, "waits"), dir: filepath.Join(root, "run"),
		http: porttest.Free(t), https: porttest.Free(t), healthz: porttest.Free(t), defaultServer: porttest.Free(t), status: porttest.Free(t), log: &headgatetest.Log{}, ended: make(chan struct{}),
	}
	p.write("nginx", fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *' -c %s '*) echo >%s; while [ ! -e %s ]; do sleep 0.01; done ;; esac\nexec %s \"$@\"\n",
		filepath.Join(p.dir, "nginx.conf"), p.waits, p.permit, nginx), 0o755)
	if err := os.Mkdir(p.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write("manifests/all.yaml", manifests, 0o644)
	p.cmd = exec.Command(binary, append([]string{"--manifests-dir", p.folder, "--run-dir", p.dir, "--http-port", fmt.Sprint(p.http),
		"--https-port", fmt.Sprint(p.https), "--healthz-port", fmt.Sprint(p.healthz), "--default-server-port", fmt.Sprint(p.defaultServer), "--status-port", fmt.Sprint(p.status),
		"--profiling=false", "--configmap", "default/headgate"}, flags...)...)
	p.cmd.Env = append(os.Environ(), "HEADGATE_NGINX="+filepath.Join(root, "nginx"))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	return p
}

func (p *program) start() {
	t := p.t
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		// How it ended stands in p.cmd.ProcessState.
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		select {
		case <-p.ended:
		default:
			p.end()
		}
		if t.Failed() {
			t.Logf("the log of the program:\n%s", p.log.String())
		}
	})
}

func (p *program) write(name, text string, mode os.FileMode) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(p.folder), name), []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}

// end makes the program leave, with all that it runs.
func (p *program) end() {
	p.open(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

// open says whether NGINX may start.
func (p *program) open(yes bool) {
	p.t.Helper()
	if yes {
		p.write("permit", "", 0o644)
	} else if err := os.Remove(p.permit); err != nil {
		p.t.Fatal(err)
	}
}

// health is what the health check answers, with status 0 without an answer.
func (p *program) health() (int, string) {
	response, err := http.Get("http://" + headgatetest.Address(p.healthz) + "/healthz")
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

func (p *program) wantHealth(when string, status int, reason string) {
	p.t.Helper()
	var last string
	headgatetest.Eventually(p.t, fmt.Sprintf("the health check says %d %s", status, reason), func() bool {
		got, text := p.health()
		last = fmt.Sprint(got, text)
		return got == status && strings.Contains(text, reason)
	})
	p.t.Logf("%s: %s", when, strings.TrimSpace(last))
}

// master is the pid of NGINX's master.
func (p *program) master() int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "nginx.pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// The health check reports whether requests are served as they should be.
func checkHealth(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, served("one", headgatetest.StartEcho(t, "one"))+headgatetest.Ingress("a", "a.test", "/", "one"))
	p.wantHealth("before NGINX runs", 500, "first load")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	l := &line{port: p.http}
	defer l.close()
	// Healthy means that the first load is there.
	if err := l.post("a.test"); err != nil {
		t.Error(err)
	}

	master := p.master()
	kill(t, -master, syscall.SIGSTOP)
	p.wantHealth("with an NGINX that hangs", 500, "does not respond")
	kill(t, -master, syscall.SIGCONT)
	p.wantHealth("with one that goes on", 200, "ok")

	p.open(false)
	kill(t, -master, syscall.SIGKILL)
	p.wantHealth("without NGINX", 500, "")
	p.open(true)
	p.wantHealth("with NGINX again", 200, "ok")
	l.close()
	if err := l.post("a.test"); err != nil {
		t.Error(err)
	}
}

// SIGTERM while NGINX starts is not a failure.
func checkEarlyEnd(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, "")
	headgatetest.Eventually(t, "NGINX is started", func() bool {
		_, err := os.Stat(p.waits)
		return err == nil
	})
	p.wantHealth("before NGINX runs", 500, "first load")
	kill(t, p.cmd.Process.Pid, syscall.SIGTERM)
	<-p.ended
	if !p.cmd.ProcessState.Success() {
		t.Errorf("it left with %s", p.cmd.ProcessState)
	}
}

// SIGTERM: no new connections, the open ones are finished, and then it leaves.
func checkEnd(t *testing.T, binary string) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		fmt.Fprint(w, "late")
	}))
	finish := sync.OnceFunc(func() { close(answer) })
	p := startProgram(t, binary, served("slow", backend)+headgatetest.Ingress("a", "a.test", "/", "slow"))
	defer finish()
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")

	slow := &line{port: p.http}
	defer slow.close()
	done := make(chan error, 1)
	go func() { done <- slow.post("a.test") }()
	select {
	case <-asked:
	case err := <-done:
		t.Fatal(err)
	}
	master := p.master()
	kill(t, p.cmd.Process.Pid, syscall.SIGTERM)
	p.wantHealth("on SIGTERM", 500, "shutting down")
	headgatetest.Eventually(t, "no new connection is taken", func() bool {
		l := &line{port: p.http}
		defer l.close()
		return l.open() != nil
	})
	if status, text := p.health(); status != 500 || !strings.Contains(text, "shutting down") {
		t.Errorf("the health check says %d %s while a request is open", status, text)
	}
	select {
	case <-p.ended:
		t.Fatal("it left with a request open")
	default:
	}
	finish()
	if err := <-done; err != nil {
		t.Errorf("the request that was open: %v", err)
	}
	<-p.ended
	if !p.cmd.ProcessState.Success() {
		t.Errorf("it left with %s", p.cmd.ProcessState)
	}
	if err := syscall.Kill(-master, 0); err != syscall.ESRCH {
		t.Errorf("processes of NGINX are left: %v", err)
	}
	if strings.Contains(p.log.String(), "level=ERROR") {
		t.Error("errors were logged")
	}
}

// What is wanted of certificate authorities comes, in folder mode from this
// machine too.
func checkCertificates(t *testing.T, binary string) {
	t.Parallel()
	authority := pkitest.New(t)
	pair := authority.Issue("main.test")
	p := startProgram(t, binary, headgatetest.TLSSecret("main", headgatetest.KeyPair{Certificate: pair.Certificate, Key: pair.Key})+headgatetest.Config("enable-ocsp: true"),
		"--default-ssl-certificate=default/main", "--enable-ssl-chain-completion")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	headgatetest.Eventually(t, "the default certificate has its issuer and an OCSP response", func() bool {
		connection, err := tls.Dial("tcp", headgatetest.Address(p.https), &tls.Config{InsecureSkipVerify: true, ServerName: "unknown.test"})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		state := connection.ConnectionState()
		return state.PeerCertificates[0].Equal(pair.Leaf) && len(state.PeerCertificates) == 2 && len(state.OCSPResponse) > 0
	})
	if !strings.Contains(p.metrics(), `nginx_ingress_controller_ssl_expire_time_seconds{class="k8s.io/ingress-nginx",host="_",`) {
		t.Error("the metrics lack the certificate's end")
	}
}
