package dataplane_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// streamPorts are the ports of checkStreams.
type streamPorts struct{ first, second, taken uint16 }

// TCP and UDP services: ports open and close with the ConfigMaps, without a reload; what
// can't be opened is a finding; connections live through the end.
func checkStreams(t *testing.T, binary string) {
	t.Parallel()
	ports := streamPorts{porttest.Free(t), porttest.Free(t), porttest.Free(t)}
	holder, err := net.Listen("tcp", headgatetest.Address(ports.taken))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	a, b := echoPort(t, "a"), echoPort(t, "b")
	services := streamServices(ports, a, b)
	p := startProgram(t, binary, services+headgatetest.ConfigMap("tcp",
		fmt.Sprintf("%d: default/a:http", ports.first), fmt.Sprintf("%d: default/a:80", ports.taken), "web: default/a:80"), "--tcp-services-configmap=default/tcp", "--udp-services-configmap", "default/udp")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	p.checkFirstStreams(ports)

	old := headgatetest.Dial(t, ports.first)
	talk(t, old, "before", "a before")
	reloads := p.reloads()
	p.write("manifests/all.yaml", services+headgatetest.ConfigMap("tcp", fmt.Sprintf("%d: default/b:80", ports.second)), 0o644)
	headgatetest.Eventually(t, "the first port is closed and the second open", func() bool {
		return !opens(ports.first) && opens(ports.second)
	})
	talkOnce(t, ports.second, "now", "b now")
	talk(t, old, "still", "a still")
	p.checkStreamKeys(ports.second)
	if n := p.reloads(); n != reloads {
		t.Errorf("%s reloads after a change of ports and keys, %s before", n, reloads)
	}

	young := headgatetest.Dial(t, ports.second)
	talk(t, young, "young", "b young")
	kill(t, p.cmd.Process.Pid, syscall.SIGTERM)
	headgatetest.Eventually(t, "the second port is closed", func() bool { return !opens(ports.second) })
	for connection, name := range map[net.Conn]string{old: "a", young: "b"} {
		talk(t, connection, "at the end", name+" at the end")
		connection.Close()
	}
	<-p.ended
	if !p.cmd.ProcessState.Success() {
		t.Errorf("it left with %s", p.cmd.ProcessState)
	}
	if log := p.log.String(); strings.Count(log, " TCP 200") < 4 || strings.Count(log, " UDP 200") != 1 {
		t.Error("the access log lacks connections")
	}
}

// checkStreamKeys changes a key while connections come to a port whose endpoint answers "b".
func (p *program) checkStreamKeys(port uint16) {
	p.t.Helper()
	p.write("manifests/options.yaml", headgatetest.Config("log-format-stream: changed $protocol $status"), 0o644)
	headgatetest.Eventually(p.t, "the log has another format", func() bool {
		talkOnce(p.t, port, "x", "b x")
		return strings.Contains(p.log.String(), "changed TCP 200")
	})
	file := filepath.Join(p.t.TempDir(), "streams.log")
	p.write("manifests/options.yaml", headgatetest.Config("stream-access-log-path: "+file, "log-format-stream: filed $protocol $status"), 0o644)
	headgatetest.Eventually(p.t, "the log is in a file", func() bool {
		talkOnce(p.t, port, "x", "b x")
		text, _ := os.ReadFile(file)
		return strings.Contains(string(text), "filed TCP 200\n")
	})
	common := filepath.Join(p.t.TempDir(), "common.log")
	p.write("manifests/options.yaml", headgatetest.Config("access-log-path: "+common, "log-format-stream: common $protocol $status"), 0o644)
	headgatetest.Eventually(p.t, "the log is in the file of all access logs", func() bool {
		talkOnce(p.t, port, "x", "b x")
		text, _ := os.ReadFile(common)
		return strings.Contains(string(text), "common TCP 200\n")
	})
	p.write("manifests/options.yaml", headgatetest.Config("access-log-path: "+common, "stream-access-log-path: /var/log/nginx/access.log", "log-format-stream: own $protocol $status"), 0o644)
	headgatetest.Eventually(p.t, "a named standard output has precedence", func() bool {
		talkOnce(p.t, port, "x", "b x")
		return strings.Contains(p.log.String(), "own TCP 200")
	})
	p.write("manifests/options.yaml", headgatetest.Config("access-log-path: "+common, "access-log-params: buffer=4k gzip", "log-format-stream: back $protocol $status"), 0o644)
	headgatetest.Eventually(p.t, "the log is on standard output where NGINX compresses the file", func() bool {
		talkOnce(p.t, port, "x", "b x")
		return strings.Contains(p.log.String(), "back TCP 200")
	})
}

func streamServices(ports streamPorts, a, b string) string {
	return headgatetest.Service("a") + headgatetest.Endpoints("a", a) + headgatetest.Service("b") + headgatetest.Endpoints("b", b) +
		headgatetest.ConfigMap("udp", fmt.Sprintf("%d: default/d:53", ports.first)) +
		strings.ReplaceAll(headgatetest.Service("d"), "port: 80}", "port: 53, protocol: UDP}") +
		strings.ReplaceAll(headgatetest.Endpoints("d", a), "port: ", "protocol: UDP, port: ")
}

// checkFirstStreams checks traffic, findings and metrics.
func (p *program) checkFirstStreams(ports streamPorts) {
	t := p.t
	t.Helper()
	talkOnce(t, ports.first, "x", "a x")
	udp, err := net.Dial("udp", headgatetest.Address(ports.first))
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	if err := udp.SetDeadline(time.Now().Add(headgatetest.Timeout)); err != nil {
		t.Fatal(err)
	}
	talk(t, udp, "y", "a y")
	for _, want := range []string{
		fmt.Sprintf("0.0.0.0:%d is in use", ports.taken), fmt.Sprintf("field=data.%d code=UnavailablePort", ports.taken), "field=data.web code=InvalidValue",
	} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if want := fmt.Sprintf(`headgate_stream_bytes_total{direction="received",port="%d",protocol="tcp"} 1`, ports.first); !strings.Contains(p.metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// reloads is the line of the metrics with their number.
func (p *program) reloads() string {
	for line := range strings.Lines(p.metrics()) {
		if strings.HasPrefix(line, "headgate_reloads_total ") {
			return line
		}
	}
	return ""
}

func opens(port uint16) bool {
	connection, err := net.Dial("tcp", headgatetest.Address(port))
	if err == nil {
		connection.Close()
	}
	return err == nil
}

// talkOnce talks over a connection of its own, which would be waited for at the end.
func talkOnce(t *testing.T, port uint16, text, want string) {
	t.Helper()
	connection := headgatetest.Dial(t, port)
	talk(t, connection, text, want)
	connection.Close()
}

func talk(t *testing.T, connection net.Conn, text, want string) {
	t.Helper()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if n, err := connection.Read(got); err != nil || string(got[:n]) != want {
		t.Errorf("to %q it answers %q, %v", text, got[:n], err)
	}
}

// echoPort answers what it reads at a time, on a TCP and a UDP port of the same number, with
// its name before it.
func echoPort(t *testing.T, name string) string {
	t.Helper()
	at := porttest.Serve(t, headgatetest.Address(porttest.Free(t)), func(c *net.TCPConn) {
		b := make([]byte, 100)
		for n, err := c.Read(b); err == nil; n, err = c.Read(b) {
			fmt.Fprintf(c, "%s %s", name, b[:n])
		}
	}).String()
	packets, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	go func() {
		b := make([]byte, 100)
		for n, from, err := packets.ReadFrom(b); err == nil; n, from, err = packets.ReadFrom(b) {
			_, _ = packets.WriteTo(fmt.Appendf(nil, "%s %s", name, b[:n]), from)
		}
	}()
	return at
}
