package nginx

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/nginx/rundir"
)

func TestStartReloadStop(t *testing.T) {
	b := newFixture(t)
	begin := time.Now()
	b.start()
	took := time.Since(begin)
	t.Logf("started in %v", took)
	// Far more than it takes, and less than the timeout of Start.
	if took > 20*time.Second {
		t.Errorf("start took %v", took)
	}
	var first int
	if _, err := fmt.Sscanf(b.mustGet("/"), "1 %d", &first); err != nil {
		t.Fatal(err)
	}
	// Workers run as another user. They read Lua files when they need them, and
	// write temporary files.
	if got := b.mustGet("/lazy"); got != "hello" {
		t.Errorf("lazily loaded module: %q", got)
	}
	response, err := post(b, "/body", strings.Repeat("x", 100<<10))
	if err != nil || response != "file" {
		t.Errorf("large body: %q, %v", response, err)
	}

	if err := b.Dir.WriteGeneration(2); err != nil {
		t.Fatal(err)
	}
	master := b.PID()
	if err := b.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second generation", func() bool { return strings.HasPrefix(b.mustGet("/"), "2 ") })
	eventually(t, "the first worker's end", func() bool { return !alive(first) })
	if b.PID() != master {
		t.Errorf("the master was replaced by a reload")
	}

	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(master) || b.PID() != 0 {
		t.Error("the master lives")
	}
	if _, err := os.Stat(b.Dir.Socket()); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	if err := CheckPorts(b.addresses(), nil); err != nil {
		t.Error(err)
	}
	if err := b.Reload(); err == nil {
		t.Error("reloaded after the stop")
	}
	select {
	case pid := <-b.Restarted():
		t.Errorf("restarted as %d", pid)
	default:
	}
}

func post(b *fixture, path, body string) (string, error) {
	conn, err := net.Dial("tcp", b.Address.String())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	var last string
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		last = lines.Text()
	}
	return last, nil
}

// The master is killed under load: a new one responds within a second, and a
// connection to an old worker lasts until one of its ends closes it.
func TestMasterKilled(t *testing.T) {
	var took time.Duration
	// On a busy machine, one restart may take longer, but hardly all.
	for range 3 {
		if took = killMaster(t); took <= time.Second {
			return
		}
	}
	t.Errorf("the restart took %v, and no less than a second before", took)
}

// killMaster returns the time until there is a new master.
func killMaster(t *testing.T) (took time.Duration) {
	t.Helper()
	b := newFixture(t)
	b.start()
	long := b.echo()
	old := long.say(t, "before")
	var good, refused atomic.Int64
	var lastRefused atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := b.get("/"); err != nil {
					refused.Add(1)
					lastRefused.Store(time.Now().UnixNano())
				} else {
					good.Add(1)
				}
			}
		})
	}
	eventually(t, "traffic", func() bool { return good.Load() > 100 })

	master := b.PID()
	begin := time.Now()
	if err := syscall.Kill(master, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var restarted int
	select {
	case restarted = <-b.Restarted():
	case <-time.After(10 * time.Second):
		t.Fatalf("not restarted\n%s", b.logs)
	}
	took = time.Since(begin)
	before := good.Load()
	eventually(t, "traffic again", func() bool { return good.Load() > before+100 })
	close(stop)
	clients.Wait()
	gap := time.Duration(lastRefused.Load() - begin.UnixNano())
	t.Logf("restarted after %v; %d requests good, %d refused, the last %v after the kill", took, good.Load(), refused.Load(), gap)
	if restarted == master || b.PID() != restarted {
		t.Errorf("restarted as %d, PID %d, was %d", restarted, b.PID(), master)
	}
	if pid := long.say(t, "after"); pid != old {
		t.Errorf("worker %d took the connection of %d", pid, old)
	}
	if !b.anyLeft() {
		t.Error("the old worker is forgotten while it lives")
	}
	long.Close()
	eventually(t, "the old worker's end", func() bool { return !alive(old) })
	eventually(t, "the old group forgotten", func() bool { return !b.anyLeft() })
	return took
}

// Deaths in quick succession are followed by pauses, and Stop ends a pause.
func TestMasterKilledAgainAndAgain(t *testing.T) {
	b := newFixture(t)
	b.start()
	for range 3 {
		if err := syscall.Kill(b.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {
		case <-b.Restarted():
		case <-time.After(10 * time.Second):
			t.Fatalf("not restarted\n%s", b.logs)
		}
		b.mustGet("/")
	}
	if err := b.Dir.Write(map[string][]byte{"nginx.conf": []byte("broken")}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(b.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two vain starts", func() bool { return strings.Count(b.logs.String(), "restarting NGINX failed") >= 2 })
	if b.PID() != 0 || b.Reload() == nil {
		t.Error("an NGINX that can't start is called running")
	}
	b.write("nginx.conf")
	select {
	case <-b.Restarted():
	case <-time.After(10 * time.Second):
		t.Fatalf("not restarted\n%s", b.logs)
	}
	b.mustGet("/")
}

func TestDelay(t *testing.T) {
	var got []time.Duration
	for quick := range 9 {
		got = append(got, delay(quick))
	}
	if want := "[0s 100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]"; fmt.Sprint(got) != want {
		t.Errorf("delays %v, want %v", got, want)
	}
}

// The controller is killed, alone or with its master. The next one takes over,
// and a long connection survives.
func TestTakeOver(t *testing.T) {
	for name, masterToo := range map[string]bool{"controller": false, "controller and master": true} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.Dir.Close() // The other controller locks it.
			other := exec.Command(os.Args[0])
			other.Env = append(os.Environ(), "TEST_CONTROLLER_DIR="+b.Dir.Path(), "TEST_CONTROLLER_ADDRESS="+b.Address.String())
			out, err := other.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			if line, _ := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
				other.Process.Kill()
				t.Fatalf("the other controller says %q", line)
			}
			long := b.echo()
			old := long.say(t, "before")
			master, err := syscall.Getpgid(old)
			if err != nil {
				t.Fatal(err)
			}
			other.Process.Kill()
			other.Wait()
			if masterToo {
				syscall.Kill(master, syscall.SIGKILL)
			}
			b.mustGet("/") // NGINX serves without a controller.

			dir, err := rundir.Open(b.Dir.Path())
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			b.Dir = dir
			b.renew(nil)
			begin := time.Now()
			b.start()
			t.Logf("took over in %v", time.Since(begin))
			for range 20 {
				if text := b.mustGet("/"); strings.HasSuffix(text, fmt.Sprint(" ", old)) {
					t.Fatal("the old worker still accepts")
				}
			}
			if pid := long.say(t, "after"); pid != old {
				t.Errorf("worker %d took the connection of %d", pid, old)
			}
			long.Close()
			eventually(t, "the old worker's end", func() bool { return !alive(old) })
			eventually(t, "the old master's end", func() bool { return !alive(master) })
			b.mustGet("/")
		})
	}
}

// The NGINX of another directory is not an orphan of this one.
func TestTakeOverSparesOthers(t *testing.T) {
	other := newFixture(t)
	other.start()
	b := newFixture(t)
	b.Address = other.Address
	b.renew(nil)
	b.write("nginx.conf")
	err := b.Start(t.Context())
	if err == nil {
		b.Stop(t.Context())
		t.Fatal("two instances share a port")
	}
	if want := fmt.Sprintf("%s is in use by nginx (process %d)", other.Address, other.PID()); !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	other.mustGet("/")
}

func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	b := newFixture(t)
	b.start()
	left := b.echo()
	left.say(t, "one")
	syscall.Kill(b.PID(), syscall.SIGKILL)
	<-b.Restarted()
	current := b.echo()
	current.say(t, "two")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := b.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v\n%s", err, b.logs)
	}
	// It should take two seconds at most, and the connections would never end
	// without being cut.
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("the stop took %v", took)
	}
	for _, connection := range []*echo{left, current} {
		if _, err := connection.lines.ReadByte(); err == nil {
			t.Error("a connection is open")
		}
	}
}

func TestStartFails(t *testing.T) {
	b := newFixture(t)
	b.Init = `error("no luck")`
	b.write("nginx.conf")
	err := b.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("%v\n%s", err, b.logs)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTestReportsTheReason(t *testing.T) {
	b := newFixture(t)
	b.start()
	if err := b.Test(t.Context(), b.Dir.Conf()); err != nil {
		t.Error(err)
	}
	b.Init = "}\nnonsense on;\ninit_worker_by_lua_block {"
	conf := b.write("next.conf")
	var refused *ConfError
	if err := b.Test(t.Context(), conf); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if refused.File != conf || refused.Line == 0 || refused.Reason != `unknown directive "nonsense"` {
		t.Errorf("%+v", refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Test(ctx, conf); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// None of it affected the process.
	b.mustGet("/")
	if !answers(t.Context(), b.Dir.Socket()) {
		t.Error("the socket is gone")
	}
	if err := b.Test(t.Context(), filepath.Join(b.Dir.Path(), "none.conf")); !errors.As(err, &refused) {
		t.Error(err)
	}
}
