package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

//go:embed stream.conf.tmpl
var streamTemplate string

// streamModuleVariable names NGINX's stream module, if it is in no usual place.
const streamModuleVariable = "HEADGATE_STREAM_MODULE"

// A streamLoad is a kind of load of a TCP or UDP service: each connection sends messages,
// and waits for each to come back.
type streamLoad struct {
	network     string
	size        int
	connections int
}

func streamLoads() []streamLoad {
	return []streamLoad{{"tcp", 64, 1000}, {"tcp", 1 << 20, 1000}, {"udp", 64, 1000}, {"udp", 1400, 1000}}
}

func (l streamLoad) String() string {
	return fmt.Sprintf("%s, %d bytes, %d connections", l.network, l.size, l.connections)
}

// A streamSide is a program that relays.
type streamSide struct {
	name string
	port int
	pid  int
}

// A streamTurn is a program under one kind of load.
type streamTurn struct {
	streamSide
	load  streamLoad
	meter meter
}

// measureStreams compares TCP and UDP services with NGINX's stream module, in turns, and
// prints the medians.
func measureStreams(ctx context.Context, s *stage, n size, to io.Writer) error {
	idle, err := allowedIdle()
	if err != nil {
		return err
	}
	echo, err := startEcho()
	if err != nil {
		return err
	}
	defer echo.stop()
	static, err := s.startStreamNginx(ctx, echo.port)
	if err != nil {
		return err
	}
	ours, err := s.startStreamHeadgate(ctx, echo.port)
	if err != nil {
		return err
	}
	// First, since clients whose datagrams were lost leave sessions.
	if err := measureIdle(ctx, idle, static, ours, to); err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nload\tNGINX µs CPU/message\tHeadgate\tratio\tNGINX messages/s\tHeadgate\tratio")
	for _, load := range streamLoads() {
		a, b := &streamTurn{streamSide: static, load: load}, &streamTurn{streamSide: ours, load: load}
		if err := inRounds(ctx, n, []*streamTurn{a, b}); err != nil {
			return err
		}
		fmt.Fprintf(table, "%v\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.2f\n", load,
			medianOf(a.meter.costs), medianOf(b.meter.costs), medianOf(ratiosOf(b.meter.costs, a.meter.costs)),
			medianOf(a.meter.rates), medianOf(b.meter.rates), medianOf(ratiosOf(b.meter.rates, a.meter.rates)))
	}
	return table.Flush()
}

// startStreamNginx starts an NGINX with one service.
func (s *stage) startStreamNginx(ctx context.Context, backend int) (streamSide, error) {
	module := os.Getenv(streamModuleVariable)
	if module == "" {
		module = "/usr/lib/nginx/modules/ngx_stream_module.so"
	}
	if _, err := os.Stat(module); err != nil {
		return streamSide{}, fmt.Errorf("NGINX's stream module is missing (libnginx-mod-stream; %s can name it): %w", streamModuleVariable, err)
	}
	pid, port, err := s.startPlain(ctx, "stream", streamTemplate, plainNginx{Backend: backend, StreamModule: module})
	if err != nil {
		return streamSide{}, err
	}
	return streamSide{name: "nginx", port: port, pid: pid}, pin(pid, workerCore)
}

// startStreamHeadgate starts a Headgate with the same service.
func (s *stage) startStreamHeadgate(ctx context.Context, backend int) (streamSide, error) {
	at, err := s.place("streams")
	if err != nil {
		return streamSide{}, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return streamSide{}, err
	}
	if err := os.MkdirAll(at.folder, 0o755); err != nil {
		return streamSide{}, err
	}
	if err := os.WriteFile(filepath.Join(at.folder, "all.yaml"), []byte(streamManifests(ports[0], backend)), 0o600); err != nil {
		return streamSide{}, err
	}
	h, err := s.launch(ctx, at, loopback, func(args ...string) (*process, error) {
		// From its start, so that it has one thread that runs Go, as NGINX has one worker.
		return s.start(at.name, "taskset", append(append([]string{"-c", strconv.Itoa(workerCore), s.headgate}, args...), "--manifests-dir", at.folder,
			"--tcp-services-configmap", namespace+"/tcp", "--udp-services-configmap", namespace+"/udp")...)
	})
	if err != nil {
		return streamSide{}, err
	}
	return streamSide{name: "headgate", port: ports[0], pid: h.process.cmd.Process.Pid}, nil
}

func streamManifests(port, backend int) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: headgate}\ndata: {worker-processes: \"1\", disable-stream-access-log: \"true\"}\n", namespace)
	for _, protocol := range []string{"tcp", "udp"} {
		text += fmt.Sprintf(`---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: %[1]s, name: %[2]s}
data: {"%[3]d": "%[1]s/%[2]s:1"}
---
apiVersion: v1
kind: Service
metadata: {namespace: %[1]s, name: %[2]s}
spec: {ports: [{name: p, port: 1, protocol: %[4]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: %[1]s, name: %[2]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: p, port: %[5]d, protocol: %[4]s}]
endpoints: [{addresses: [127.0.0.1]}]
`, namespace, protocol, port, map[string]string{"tcp": "TCP", "udp": "UDP"}[protocol], backend)
	}
	return text
}

// cpuOfAll is what all threads of a process have used.
func cpuOfAll(pid int) (time.Duration, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			return 0, err
		}
		used, err := cpuTime(id)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

func (t *streamTurn) String() string { return t.name + ", " + t.load.String() }

// measure puts a side under load for some time. All connections are open before that.
func (t *streamTurn) measure(ctx context.Context, during time.Duration) error {
	connections, err := t.open(ctx, t.load, t.load.connections)
	defer closeAll(connections)
	if err != nil {
		return err
	}
	return t.meter.take(func() (time.Duration, error) { return cpuOfAll(t.pid) }, func() (int, error) {
		until := time.Now().Add(during)
		var messages atomic.Int64
		var group sync.WaitGroup
		for _, c := range connections {
			group.Go(func() { messages.Add(talk(ctx, c, t.load, until)) })
		}
		group.Wait()
		if messages.Load() == 0 {
			return 0, errors.New("no message came back")
		}
		return int(messages.Load()), nil
	})
}

// open opens connections, over each of which one byte has come back.
func (side *streamSide) open(ctx context.Context, load streamLoad, n int) ([]net.Conn, error) {
	var all []net.Conn
	first := streamLoad{network: load.network, size: 1}
	for range n {
		c, err := net.Dial(load.network, local(side.port))
		if err != nil {
			return all, err
		}
		all = append(all, c)
		if load.network == "tcp" {
			if err := first.exchange(c, make([]byte, 1)); err != nil {
				return all, err
			}
		}
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	return all, nil
}

func closeAll(connections []net.Conn) {
	for _, c := range connections {
		c.Close()
	}
}

const (
	// lostAfter is when a datagram counts as lost.
	lostAfter = time.Second
	// readAtOnce is how much of an answer is read at once.
	readAtOnce = 64 << 10
)

// talk sends messages until a time, and returns how many came back.
func talk(ctx context.Context, c net.Conn, load streamLoad, until time.Time) (n int64) {
	answer := make([]byte, min(load.size, readAtOnce))
	for time.Now().Before(until) && ctx.Err() == nil {
		err := load.exchange(c, answer)
		switch {
		case err == nil:
			n++
		case load.network == "tcp" || !errors.Is(err, os.ErrDeadlineExceeded):
			return n
		}
	}
	return n
}

// message has the bytes of all messages.
var message [1 << 20]byte

// exchange sends a message, and waits until it came back.
func (l streamLoad) exchange(c net.Conn, answer []byte) error {
	sent := message[:l.size]
	if l.network == "udp" {
		if _, err := c.Write(sent); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(lostAfter)); err != nil {
			return err
		}
		_, err := c.Read(answer)
		return err
	}
	wrote := make(chan error, 1)
	write := func() {
		_, err := c.Write(sent)
		wrote <- err
	}
	if l.size > readAtOnce {
		// What comes back must be read meanwhile.
		go write()
	} else {
		write()
	}
	for left := l.size; left > 0; {
		n, err := c.Read(answer[:min(left, len(answer))])
		if left -= n; err != nil {
			return err
		}
	}
	return <-wrote
}

// An echo sends back what it gets, over TCP and UDP on one port.
type echo struct {
	port    int
	tcp     net.Listener
	packets net.PacketConn
}

func startEcho() (*echo, error) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	packets, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		tcp.Close()
		return nil, err
	}
	e := &echo{port: tcp.Addr().(*net.TCPAddr).Port, tcp: tcp, packets: packets}
	go e.serve()
	go e.answer()
	return e, nil
}

// echoBuffer is how much of a connection is read at once.
const echoBuffer = 16 << 10

func (e *echo) serve() {
	for {
		c, err := e.tcp.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			// Not by io.Copy, which takes a pipe for each connection.
			b := make([]byte, echoBuffer)
			for n, err := c.Read(b); err == nil; n, err = c.Read(b) {
				if _, err := c.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}

func (e *echo) answer() {
	b := make([]byte, 64<<10)
	udp := e.packets.(*net.UDPConn)
	for {
		n, from, err := udp.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = udp.WriteToUDPAddrPort(b[:n], from)
		}
	}
}

func (e *echo) stop() {
	e.tcp.Close()
	e.packets.Close()
}
