package headgatetest

import (
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/porttest"
)

// A Redis is a store for limits over all replicas.
type Redis struct {
	t       testing.TB
	port    uint16
	more    []string
	command *exec.Cmd
}

// StartRedis starts Debian's redis-server on the loopback address until the test ends, with
// further options.
func StartRedis(t testing.TB, options ...string) *Redis {
	t.Helper()
	r := &Redis{t: t, port: porttest.Free(t), more: options}
	r.Start()
	t.Cleanup(r.Kill)
	return r
}

// Start starts it, with no data.
func (r *Redis) Start() {
	r.t.Helper()
	port := fmt.Sprint(r.port)
	r.command = exec.Command("redis-server", append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", r.t.TempDir(), "--logfile", "log",
	}, r.more...)...)
	must(r.t, r.command.Start())
	Eventually(r.t, "redis-server listens", func() bool {
		connection, err := net.DialTimeout("tcp", Address(r.port), time.Second)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}

// Kill kills it, if it runs.
func (r *Redis) Kill() {
	if r.command == nil {
		return
	}
	_ = r.command.Process.Kill()
	_ = r.command.Wait()
	r.command = nil
}

// URL is its URL for --limit-store.
func (r *Redis) URL() string { return "redis://" + Address(r.port) }
