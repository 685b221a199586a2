package main

import (
	"bufio"
	"context"
	"encoding/json"
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

// Instructions are those of user code that a worker takes for a request, by kind
// of request. They hardly depend on the machine and its load.
type Instructions struct {
	// NGINX is the version by which they were counted.
	NGINX string             `json:"nginx"`
	Kinds map[string]float64 `json:"instructions"`
}

const (
	// maxDrift is by how much a count may differ from the table's, as a ratio.
	maxDrift = 0.02
	// Of each kind: requests before it counts, until all is compiled, and those
	// that are counted, several cycles of Lua's garbage collection.
	warmRequests, countedRequests = 2500, 4000
	// turnedHosts is the number of hosts that the kind "in turn" asks for.
	turnedHosts = 1000
)

// A requestKind is a kind of request that is counted.
type requestKind struct {
	name, path string
	host       func(i int) string
	headers    []string
}

// countedFeatures are the feature rows that are counted, by the kind's name.
var countedFeatures = []struct{ kind, row string }{
	{"canary", "canary, half of the requests"},
	{"rewrite", "rewrite-target with a group"},
	{"external authentication, cached", "external authentication, from its cache"},
	{"cors", "cors, with an Origin"},
	{"redirect", "permanent-redirect"},
}

func requestKinds() []requestKind {
	always := func(host string) func(int) string { return func(int) string { return host } }
	kinds := []requestKind{
		{name: "one host", host: always(hostName(5))},
		{name: "1,000 hosts in turn", host: func(i int) string { return hostName(i % turnedHosts) }},
		{name: "a profile of its own", host: always(profileHost)},
		{name: "a wildcard host", host: always(fmt.Sprintf(wildcardRouting.asked, 0))},
		{name: "a host of regular expressions", host: always(fmt.Sprintf(patternRouting.asked, 0)), path: patternRouting.path},
	}
	for _, one := range countedFeatures {
		i := slices.IndexFunc(featureRows, func(r featureRow) bool { return r.name == one.row })
		kinds = append(kinds, requestKind{name: one.kind, host: always(featureHost(i)), headers: featureRows[i].headers})
	}
	return kinds
}

// checkInstructions counts and compares with the file, or writes it.
func checkInstructions(ctx context.Context, s *stage, file string, update bool) error {
	counted, err := s.countInstructions(ctx)
	if err != nil {
		return fmt.Errorf("count instructions: %w", err)
	}
	if update {
		text, err := json.MarshalIndent(counted, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(file, append(text, '\n'), 0o644)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the table of instructions: %w", err)
	}
	var table Instructions
	if err := json.Unmarshal(text, &table); err != nil {
		return fmt.Errorf("read the table of instructions: %w", err)
	}
	return table.compare(counted, os.Stdout)
}

// compare prints both and fails if a count is not that of the table. Counts of
// another NGINX are only printed.
func (t Instructions) compare(counted Instructions, out io.Writer) error {
	var failed []error
	for _, kind := range requestKinds() {
		was, is := t.Kinds[kind.name], counted.Kinds[kind.name]
		fmt.Fprintf(out, "%-34s %8.0f in the table, %8.0f counted, %+.1f %%\n", kind.name, was, is, 100*(is/was-1))
		if t.NGINX == counted.NGINX && !(is <= was*(1+maxDrift) && is >= was*(1-maxDrift)) {
			failed = append(failed, fmt.Errorf("%s: %.0f instructions, and %.0f in the table; if that is right: go run ./bench -instructions -update", kind.name, is, was))
		}
	}
	return errors.Join(failed...)
}

// A counter is a Headgate whose NGINX is a single process in callgrind.
type counter struct {
	dir, socket string
	port        int
	connection  net.Conn
	reader      *bufio.Reader
}

func (s *stage) countInstructions(ctx context.Context) (Instructions, error) {
	counted := Instructions{NGINX: s.nginx.Version, Kinds: map[string]float64{}}
	auth, end, err := startAuthService()
	if err != nil {
		return counted, err
	}
	defer end()
	at, err := s.place("counted")
	if err != nil {
		return counted, err
	}
	if err := writeFolder(at.folder, turnedHosts, s.backend, false, exactRouting); err != nil {
		return counted, err
	}
	if err := writeFolder(at.folder, 1, s.backend, false, exactRouting, wildcardRouting, patternRouting); err != nil {
		return counted, err
	}
	if err := writeFeatures(at.folder, auth, s.backend); err != nil {
		return counted, err
	}
	c, stop, err := s.startCounter(ctx, at)
	if err != nil {
		return counted, err
	}
	defer stop()
	for _, kind := range requestKinds() {
		count, err := c.count(kind)
		if err != nil {
			return counted, fmt.Errorf("%s: %w", kind.name, err)
		}
		counted.Kinds[kind.name] = float64(int(count))
	}
	return counted, nil
}

// wrapper runs NGINX in callgrind. Each call of the function, which only the
// data plane's API makes, writes what was counted since the last one.
const wrapper = `#!/bin/sh
case " $* " in
*" -c $RUN/nginx.conf "*) ;;
*) exec $NGINX "$@" ;;
esac
case " $* " in
*" -t "*) exec $NGINX "$@" ;;
esac
sed 's/^master_process on;/master_process off;/' $RUN/nginx.conf >$RUN/single.conf
exec valgrind -q --tool=callgrind --vgdb=no --dump-before=ngx_http_lua_ffi_worker_pid --callgrind-out-file=$RUN/count $NGINX -p $RUN -c $RUN/single.conf -e stderr
`

func (s *stage) startCounter(ctx context.Context, at place) (*counter, func(), error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return nil, nil, fmt.Errorf("%w; on Debian and Ubuntu: apt-get install valgrind", err)
	}
	script := filepath.Join(s.dir, "counted-nginx")
	text := strings.NewReplacer("$RUN", at.runDir, "$NGINX", s.nginx.Binary).Replace(wrapper)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(s.headgate, "--manifests-dir", at.folder, "--run-dir", at.runDir, "--http-port", strconv.Itoa(at.http),
		"--https-port", strconv.Itoa(at.https), "--healthz-port", strconv.Itoa(at.health), "--configmap", namespace+"/headgate")
	cmd.Env = append(os.Environ(), "HEADGATE_NGINX="+script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := s.startCommand(at.name, cmd)
	if err != nil {
		return nil, nil, err
	}
	c := &counter{dir: at.runDir, socket: filepath.Join(at.runDir, "sock", "api.sock"), port: at.http}
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
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("start Headgate with its NGINX in callgrind: %w", err)
	}
	return c, stop, nil
}

// count returns the instructions of one request of a kind.
func (c *counter) count(kind requestKind) (float64, error) {
	send := func(n int) error {
		for i := range n {
			if err := c.ask(kind, i); err != nil {
				return err
			}
		}
		return nil
	}
	if err := send(warmRequests); err != nil {
		return 0, err
	}
	if _, err := c.mark(); err != nil {
		return 0, err
	}
	if err := send(countedRequests); err != nil {
		return 0, err
	}
	with, err := c.mark()
	if err != nil {
		return 0, err
	}
	own, err := c.mark()
	return float64(with-own) / countedRequests, err
}

// ask sends one request over the kept connection.
func (c *counter) ask(kind requestKind, i int) error {
	if c.connection == nil {
		connection, err := net.Dial("tcp", local(c.port))
		if err != nil {
			return err
		}
		c.connection, c.reader = connection, bufio.NewReader(connection)
	}
	text := "GET " + kind.path
	if kind.path == "" {
		text += "/"
	}
	text += " HTTP/1.1\r\nHost: " + kind.host(i) + "\r\n"
	for _, header := range kind.headers {
		text += header + "\r\n"
	}
	if _, err := io.WriteString(c.connection, text+"\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	if response.Close {
		c.connection.Close()
		c.connection = nil
	}
	return nil
}

// mark has callgrind write what it counted since the last mark, and returns it.
func (c *counter) mark() (int, error) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
		}}}
	response, err := client.Get("http://data-plane/v1/state")
	if err != nil {
		return 0, err
	}
	response.Body.Close()
	files, err := filepath.Glob(filepath.Join(c.dir, "count.*"))
	if err != nil {
		return 0, err
	}
	newest, last := "", 0
	for _, file := range files {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(file), ".")); err == nil && n > last {
			newest, last = file, n
		}
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
