package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A counter is an NGINX that is a single process in callgrind.
type counter struct {
	// dir is where callgrind writes, in files that begin with "count.".
	dir         string
	port, https int
	// dump has callgrind write what it counted.
	dump func() error
	// profiles is where its output is copied to, empty for nowhere.
	profiles string
}

// callgrind is the command that runs NGINX so. Each call of the function writes what
// was counted since the last one: it must be one that no counted request calls. From 2 KB on,
// the C library would fill memory by one instruction of which callgrind counts each byte.
func callgrind(dir, function string) []string {
	return []string{"env", "GLIBC_TUNABLES=glibc.cpu.x86_rep_stosb_threshold=1073741824:glibc.cpu.x86_rep_movsb_threshold=1073741824", "valgrind", "-q", "--tool=callgrind", "--vgdb=no", "--dump-before=" + function, "--callgrind-out-file=" + filepath.Join(dir, "count")}
}

// startCountedByHand starts the NGINX by hand.
func (s *stage) startCountedByHand(ctx context.Context, name string, values plainNginx) (c *counter, end func(), err error) {
	values.Counted = true
	file, port, err := s.writePlain(name, staticTemplate, values)
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Dir(file)
	command := append(callgrind(dir, "ngx_http_send_response"), s.nginx.Binary, "-p", dir, "-c", file, "-e", "stderr")
	p, err := s.start(name, command[0], command[1:]...)
	if err == nil {
		err = p.until(ctx, "listening", func() bool { return listens(port) })
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start the static NGINX in callgrind: %w", err)
	}
	return &counter{dir: dir, port: port, dump: func() error {
		return fetch(http.DefaultTransport, "http://"+local(port)+"/mark")
	}}, p.stop, nil
}

// fetch asks for something whose answer does not matter.
func fetch(transport http.RoundTripper, url string) error {
	client := &http.Client{Timeout: time.Minute, Transport: transport}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// wrapper runs NGINX in callgrind. Only the data plane's API calls the function.
const wrapper = `#!/bin/sh
case " $* " in
*" -c $RUN/nginx.conf "*) ;;
*) exec $NGINX "$@" ;;
esac
case " $* " in
*" -t "*) exec $NGINX "$@" ;;
esac
sed 's/^master_process on;/master_process off;/' $RUN/nginx.conf >$RUN/single.conf
LD_PRELOAD=$STEADY exec $CALLGRIND $NGINX -p $RUN -c $RUN/single.conf -e stderr
`

func (s *stage) startCounter(ctx context.Context, at place) (*counter, func(), error) {
	script := filepath.Join(s.dir, "counted-nginx")
	steady, err := s.buildSteady(ctx)
	if err != nil {
		return nil, nil, err
	}
	command := strings.Join(callgrind(at.runDir, "ngx_http_lua_ffi_worker_pid"), " ")
	text := strings.NewReplacer("$RUN", at.runDir, "$NGINX", s.nginx.Binary, "$CALLGRIND", command, "$STEADY", steady).Replace(wrapper)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(s.headgate, append([]string{
		"--manifests-dir", at.folder, "--run-dir", at.runDir, "--http-port", strconv.Itoa(at.http),
		"--https-port", strconv.Itoa(at.https), "--healthz-port", strconv.Itoa(at.health), "--profiling=false",
		"--default-server-port", "0", "--status-port", "0", "--configmap", namespace + "/headgate",
	}, s.arguments...)...)
	cmd.Env = append(os.Environ(), "HEADGATE_NGINX="+script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := s.startCommand(at.name, cmd)
	if err != nil {
		return nil, nil, err
	}
	api := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(at.runDir, "sock", "api.sock"))
	}}
	c := &counter{dir: at.runDir, port: at.http, https: at.https, dump: func() error { return fetch(api, "http://data-plane/v1/state") }}
	// It serves no requests any more, and need not end in good order.
	stop := func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if text, err := os.ReadFile(filepath.Join(at.runDir, "nginx.pid")); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	err = p.until(ctx, "ready", func() bool {
		response, err := http.Get("http://" + local(at.health) + "/healthz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	if err == nil {
		// It would ask for the state as well.
		err = p.cmd.Process.Signal(syscall.SIGSTOP)
	}
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("start Headgate with its NGINX in callgrind: %w", err)
	}
	return c, stop, nil
}

// count returns the instructions of one request of a kind.
func (c *counter) count(kind requestKind) (float64, error) {
	ask, end, err := c.connect(kind)
	if err != nil {
		return 0, err
	}
	defer end()
	send := func(n int) error {
		for i := range n {
			if err := ask(kind.host(i)); err != nil {
				return err
			}
		}
		return nil
	}
	warm, requests := warmRequests, countedRequests
	if kind.dear {
		warm, requests = warm/10, requests/10
	}
	if err := send(warm); err != nil {
		return 0, err
	}
	if _, err := c.mark(); err != nil {
		return 0, err
	}
	if err := send(requests); err != nil {
		return 0, err
	}
	with, err := c.mark()
	if err != nil {
		return 0, err
	}
	if err := c.keep(kind); err != nil {
		return 0, err
	}
	own, err := c.mark()
	return float64(with-own) / float64(requests), err
}

// connect returns what sends one request for a host over a connection of its own.
func (c *counter) connect(kind requestKind) (ask func(host string) error, end func(), err error) {
	if kind.http2 {
		return c.connectHTTP2(kind)
	}
	connection, err := net.Dial("tcp", local(c.port))
	if kind.tls {
		connection, err = tls.Dial("tcp", local(c.https), &tls.Config{ServerName: kind.host(0), InsecureSkipVerify: true})
	}
	if err != nil {
		return nil, nil, err
	}
	path := cmp.Or(kind.path, "/")
	headers := strings.Join(append(slices.Clone(kind.headers), ""), "\r\n")
	sign := func() string { return "" }
	if kind.digest {
		next, err := signer(c.port, kind.host(0), path)
		if err != nil {
			return nil, nil, err
		}
		sign = func() string { return next() + "\r\n" }
	}
	reader := bufio.NewReader(connection)
	ask = func(host string) error {
		if _, err := io.WriteString(connection, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n"+headers+sign()+"\r\n"); err != nil {
			return err
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return err
		}
		return consume(response)
	}
	return ask, func() { connection.Close() }, nil
}

// connectHTTP2 does so for HTTP/2. Of Go's client, requests that are alike are the same
// bytes, as long as they have no headers.
func (c *counter) connectHTTP2(kind requestKind) (ask func(host string) error, end func(), err error) {
	transport := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", local(c.https))
		},
	}
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	ask = func(host string) error {
		request, err := http.NewRequest(http.MethodGet, "https://"+host+cmp.Or(kind.path, "/"), nil)
		if err != nil {
			return err
		}
		if kind.grpc {
			request.Method, request.Body = http.MethodPost, io.NopCloser(strings.NewReader(grpcMessage))
			for name, value := range grpcHeaders {
				request.Header.Set(name, value)
			}
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if response.ProtoMajor != 2 {
			return errors.New("the answer is not by HTTP/2")
		}
		if err := consume(response); err != nil || !kind.grpc {
			return err
		}
		if status := response.Trailer.Get("Grpc-Status"); status != "0" {
			return fmt.Errorf("grpc-status %q", status)
		}
		return nil
	}
	return ask, transport.CloseIdleConnections, nil
}

func consume(response *http.Response) error {
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

// newest is callgrind's last output.
func (c *counter) newest() (string, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "count.*"))
	if err != nil {
		return "", err
	}
	newest, last := "", 0
	for _, file := range files {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(file), ".")); err == nil && n > last {
			newest, last = file, n
		}
	}
	return newest, nil
}

// keep copies callgrind's last output into the directory of profiles.
func (c *counter) keep(kind requestKind) error {
	if c.profiles == "" {
		return nil
	}
	file, err := c.newest()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.profiles, "callgrind."+strings.NewReplacer(" ", "-", ",", "", "/", "").Replace(kind.name)), text, 0o644)
}

// mark has callgrind write what it counted since the last mark, and returns it.
func (c *counter) mark() (int, error) {
	if err := c.dump(); err != nil {
		return 0, err
	}
	newest, err := c.newest()
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(newest)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		for _, prefix := range []string{"summary: ", "totals: "} {
			if count, found := strings.CutPrefix(line, prefix); found {
				return strconv.Atoi(strings.TrimSpace(count))
			}
		}
	}
	return 0, fmt.Errorf("%s does not have what was counted", newest)
}
