package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	NGINX string `json:"nginx"`
	// ByHand are those of the NGINX by hand for a plain request, counted in the
	// same run. Ratios to it are compared: an update of a library changes both.
	ByHand float64            `json:"by_hand"`
	Kinds  map[string]float64 `json:"instructions"`
}

const (
	// maxDrift is by how much a ratio may differ from the table's, as a ratio. Requests with
	// features differ by up to 11 % from process to process, by what LuaJIT compiles.
	maxDrift, maxFeatureDrift = 0.02, 0.15
	// Of each kind: requests before it counts, until all is compiled, and those
	// that are counted, several cycles of Lua's garbage collection.
	warmRequests, countedRequests = 2000, 3000
	// inTurn is the kind that asks for turnedHosts hosts in turn.
	inTurn      = "1,000 hosts in turn"
	turnedHosts = 1000
)

// A requestKind is a kind of request that is counted.
type requestKind struct {
	name, path string
	host       func(i int) string
	headers    []string
	// tls and http2, which is over TLS: how the connection is made.
	tls, http2 bool
	// feature: the request has more than routing, see maxFeatureDrift.
	feature bool
}

func (k requestKind) maxDrift() float64 {
	if k.feature {
		return maxFeatureDrift
	}
	return maxDrift
}

// countedFeatures are the feature rows that are counted, by the kind's name.
var countedFeatures = []struct{ kind, row string }{
	{"basic authentication", "basic authentication"},
	{"external authentication, cached", "external authentication, from its cache"},
	{"cors", "cors, with an Origin"},
	{"canary", "canary by a header"},
	{"rewrite", "rewrite-target with a group"},
}

func requestKinds() []requestKind {
	always := func(host string) func(int) string { return func(int) string { return host } }
	kinds := []requestKind{
		{name: "one host", host: always(hostName(5))},
		{name: inTurn, host: func(i int) string { return hostName(i % turnedHosts) }},
		{name: "a profile of its own", host: always(profileHost)},
		{name: "a host of regular expressions", host: always(fmt.Sprintf(patternRouting.asked, 0)), path: patternRouting.path, feature: true},
		{name: "one host, over TLS", host: always(hostName(5)), tls: true},
		{name: "one host, over HTTP/2", host: always(hostName(5)), tls: true, http2: true},
	}
	for _, one := range countedFeatures {
		i := slices.IndexFunc(featureRows, func(r featureRow) bool { return r.name == one.row })
		kinds = append(kinds, requestKind{name: one.kind, host: always(featureHost(i)), headers: featureRows[i].headers, feature: true})
	}
	return kinds
}

// An instructionTask says what is done with the instructions of requests.
type instructionTask struct {
	// table is the file that they are compared with, or that is written if update
	// is set.
	table  string
	update bool
	// profiles is a directory for callgrind's output by kind, empty for none.
	profiles string
}

// attempts is how often all kinds are counted: for the table, of which each count is the
// median; and before a ratio that differs fails, since a new process may compile otherwise.
const attempts = 3

func (t instructionTask) run(ctx context.Context, s *stage) error {
	var table Instructions
	if !t.update {
		text, err := os.ReadFile(t.table)
		if err == nil {
			err = json.Unmarshal(text, &table)
		}
		if err != nil {
			return fmt.Errorf("read the table of instructions: %w", err)
		}
	}
	var all []Instructions
	for i := range attempts {
		counted, err := s.countInstructions(ctx, i, t.profiles)
		if err != nil {
			return fmt.Errorf("count instructions: %w", err)
		}
		all = append(all, counted)
		if !t.update && table.compare(nearest(table, all), io.Discard) == nil {
			break
		}
	}
	if t.update {
		text, err := json.MarshalIndent(medians(all), "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(t.table, append(text, '\n'), 0o644)
	}
	return table.compare(nearest(table, all), os.Stdout)
}

// nearest has of each kind the count that is nearest to the table.
func nearest(table Instructions, all []Instructions) Instructions {
	result := all[0]
	result.Kinds = map[string]float64{}
	for kind, want := range table.Kinds {
		for _, one := range all {
			// As if it had been counted beside the first one by hand.
			count := one.Kinds[kind] * result.ByHand / one.ByHand
			off := func(count float64) float64 { return math.Abs(count/result.ByHand - want/table.ByHand) }
			if best, found := result.Kinds[kind]; !found || off(count) < off(best) {
				result.Kinds[kind] = count
			}
		}
	}
	return result
}

func medians(all []Instructions) Instructions {
	result := Instructions{NGINX: all[0].NGINX, Kinds: map[string]float64{}}
	median := func(of func(Instructions) float64) float64 {
		var values []float64
		for _, one := range all {
			values = append(values, of(one))
		}
		return math.Round(percentile(values, 50))
	}
	result.ByHand = median(func(i Instructions) float64 { return i.ByHand })
	for kind := range all[0].Kinds {
		result.Kinds[kind] = median(func(i Instructions) float64 { return i.Kinds[kind] })
	}
	return result
}

// compare prints both and fails if a ratio is not that of the table. Counts of
// another NGINX are only printed.
func (t Instructions) compare(counted Instructions, out io.Writer) error {
	var failed []error
	fmt.Fprintf(out, "%-34s %8.0f in the table, %8.0f counted\n", "by hand", t.ByHand, counted.ByHand)
	for _, kind := range requestKinds() {
		was, is := t.Kinds[kind.name]/t.ByHand, counted.Kinds[kind.name]/counted.ByHand
		drift := is/was - 1
		fmt.Fprintf(out, "%-34s %8.0f in the table, %8.0f counted; by hand × %.3f, × %.3f (%+.1f %%)\n",
			kind.name, t.Kinds[kind.name], counted.Kinds[kind.name], was, is, 100*drift)
		if t.NGINX == counted.NGINX && !(drift <= kind.maxDrift() && drift >= -kind.maxDrift()) {
			failed = append(failed, fmt.Errorf("%s: by hand × %.3f instructions, and × %.3f in bench/instructions.json; if that is right: go run ./bench -instructions -update",
				kind.name, is, was))
		}
	}
	return errors.Join(failed...)
}

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
// was counted since the last one: it must be one that no counted request calls.
func callgrind(dir, function string) []string {
	return []string{"valgrind", "-q", "--tool=callgrind", "--vgdb=no", "--dump-before=" + function, "--callgrind-out-file=" + filepath.Join(dir, "count")}
}

// countInstructions counts all kinds, in processes of its own for each attempt.
func (s *stage) countInstructions(ctx context.Context, attempt int, profiles string) (Instructions, error) {
	counted := Instructions{NGINX: s.nginx.Version, Kinds: map[string]float64{}}
	if _, err := exec.LookPath("valgrind"); err != nil {
		return counted, fmt.Errorf("%w; on Debian and Ubuntu: apt-get install valgrind", err)
	}
	hand, end, err := s.startCountedByHand(ctx, fmt.Sprint("counted-by-hand-", attempt))
	if err != nil {
		return counted, err
	}
	defer end()
	hand.profiles = profiles
	if counted.ByHand, err = hand.count(requestKind{name: "by hand", host: func(int) string { return hostName(5) }}); err != nil {
		return counted, fmt.Errorf("by hand: %w", err)
	}
	auth, endAuth, err := startAuthService()
	if err != nil {
		return counted, err
	}
	defer endAuth()
	at, err := s.place(fmt.Sprint("counted-", attempt))
	if err != nil {
		return counted, err
	}
	err = errors.Join(
		writeFolder(at.folder, turnedHosts, s.backend, false, exactRouting),
		writeFolder(at.folder, 1, s.backend, false, exactRouting, wildcardRouting, patternRouting),
		writeFeatures(at.folder, auth, s.backend, keepConnections))
	if err != nil {
		return counted, err
	}
	c, stop, err := s.startCounter(ctx, at)
	if err != nil {
		return counted, err
	}
	defer stop()
	// Once every host is decoded and what that left is collected, the first kind costs no
	// more than the others.
	kinds := requestKinds()
	for range 2 {
		if _, err := c.count(kinds[slices.IndexFunc(kinds, func(k requestKind) bool { return k.name == inTurn })]); err != nil {
			return counted, fmt.Errorf("warm up: %w", err)
		}
	}
	c.profiles = profiles
	for _, kind := range kinds {
		count, err := c.count(kind)
		if err != nil {
			return counted, fmt.Errorf("%s: %w", kind.name, err)
		}
		counted.Kinds[kind.name] = float64(int(count))
		fmt.Fprintf(os.Stderr, "%s: %.0f\n", kind.name, count)
	}
	return counted, nil
}

// startCountedByHand starts the NGINX by hand.
func (s *stage) startCountedByHand(ctx context.Context, name string) (c *counter, end func(), err error) {
	file, port, err := s.writePlain(name, staticTemplate, plainNginx{Backend: s.backend, Counted: true, KeepsConnections: true})
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
	cmd := exec.Command(s.headgate, "--manifests-dir", at.folder, "--run-dir", at.runDir, "--http-port", strconv.Itoa(at.http),
		"--https-port", strconv.Itoa(at.https), "--healthz-port", strconv.Itoa(at.health), "--configmap", namespace+"/headgate")
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
	if err := c.keep(kind); err != nil {
		return 0, err
	}
	own, err := c.mark()
	return float64(with-own) / countedRequests, err
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
	headers := strings.Join(append(slices.Clone(kind.headers), "\r\n"), "\r\n")
	reader := bufio.NewReader(connection)
	ask = func(host string) error {
		if _, err := io.WriteString(connection, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n"+headers); err != nil {
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
		response, err := client.Get("https://" + host + cmp.Or(kind.path, "/"))
		if err != nil {
			return err
		}
		if response.ProtoMajor != 2 {
			return errors.New("the answer is not by HTTP/2")
		}
		return consume(response)
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
