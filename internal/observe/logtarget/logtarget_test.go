package logtarget_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/observe/logtarget"
)

// TestTargets: each line goes to the target of its time.
func TestTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var usual bytes.Buffer
	w := logtarget.New(&usual)
	write := func(target, line string, ok bool) {
		t.Helper()
		if err := w.Set(target); (err == nil) != ok {
			t.Errorf("%s: %v", target, err)
		}
		if _, err := w.Write([]byte(line + "\n")); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	socket, err := net.ListenPacket("unixgram", filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	file := filepath.Join(dir, "file")
	write("", "one", true)
	write(file, "two", true)
	write("syslog:server="+server.LocalAddr().String(), "three", true)
	write("syslog:server=unix:"+filepath.Join(dir, "log")+",facility=local0,severity=warn,tag=mine,nohostname", "four", true)
	write("/nowhere/at/all", "five", false)
	write("syslog:server=127.0.0.1,facility=x", "six", false)
	write(file, "seven", true)
	write("", "eight", true)
	if got, want := usual.String(), "one\nfive\nsix\neight\n"; got != want {
		t.Errorf("the usual target has %q, want %q", got, want)
	}
	if got, err := os.ReadFile(file); string(got) != "two\nseven\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
	for _, c := range []struct {
		from net.PacketConn
		want string
	}{
		{server, `^<190>[A-Z][a-z]{2} [ 1-3][0-9] [0-9:]{8} \S+ nginx: three$`}, {socket, `^<132>[A-Z][a-z]{2} [ 1-3][0-9] [0-9:]{8} mine: four$`},
	} {
		b := make([]byte, 1000)
		if err := c.from.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, _, err := c.from.ReadFrom(b)
		if err != nil || !regexp.MustCompile(c.want).Match(b[:n]) {
			t.Errorf("%q, %v, want %s", b[:n], err, c.want)
		}
	}
}

// TestServerAway: a server that is not there costs its lines.
func TestServerAway(t *testing.T) {
	t.Parallel()
	w := logtarget.New(&bytes.Buffer{})
	if err := w.Set("syslog:server=unix:" + filepath.Join(t.TempDir(), "none")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Write([]byte("lost\n")); err == nil {
			t.Error("a line was sent to no server")
		}
	}
}
