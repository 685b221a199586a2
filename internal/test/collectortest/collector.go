// Package collectortest runs the collector of test/collector for tests.
package collectortest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/porttest"
)

// timeout is how long a collector may take to listen, on a machine that does much else.
const timeout = 2 * time.Minute

// Options are those of a collector.
type Options struct {
	// Certificate and Key are files with a certificate and its key, empty for no TLS.
	Certificate, Key string
	// Token is what clients must send as Authorization: Bearer TOKEN, empty for nothing.
	Token string
	// Delay is how long it takes for each batch.
	Delay time.Duration
}

// A Collector receives spans on two ports of the loopback address.
type Collector struct {
	// GRPC and HTTP are its addresses, with ports.
	GRPC, HTTP string

	t               testing.TB
	program, config string
	file            string
	command         *exec.Cmd
	// ended is closed when the process has ended.
	ended <-chan struct{}
}

// Start builds the collector, if that was not done before, and runs it until the test ends.
func Start(t testing.TB, o Options) *Collector {
	t.Helper()
	c := New(t, o)
	c.Start()
	return c
}

// New builds the collector, and does not start it.
func New(t testing.TB, o Options) *Collector {
	t.Helper()
	dir := t.TempDir()
	c := &Collector{
		t: t, program: build(t), config: filepath.Join(dir, "config.yaml"), file: filepath.Join(dir, "spans"),
		GRPC: fmt.Sprintf("127.0.0.1:%d", porttest.Free(t)), HTTP: fmt.Sprintf("127.0.0.1:%d", porttest.Free(t)),
	}
	// JSON is YAML.
	text, err := json.Marshal(c.settings(o))
	must(t, err)
	must(t, os.WriteFile(c.config, text, 0o600))
	t.Cleanup(c.Kill)
	return c
}

func (c *Collector) settings(o Options) object {
	grpc, http := object{"endpoint": c.GRPC}, object{"endpoint": c.HTTP}
	service := object{
		"telemetry": object{"metrics": object{"level": "none"}, "logs": object{"level": "error"}},
		"pipelines": object{"traces": object{"receivers": []string{"otlp"}, "exporters": []string{"lines"}}},
	}
	all := object{
		"receivers": object{"otlp": object{"protocols": object{"grpc": grpc, "http": http}}},
		"exporters": object{"lines": object{"path": c.file, "delay": o.Delay.String()}},
		"service":   service,
	}
	for _, protocol := range []object{grpc, http} {
		if o.Certificate != "" {
			protocol["tls"] = object{"cert_file": o.Certificate, "key_file": o.Key}
		}
		if o.Token != "" {
			protocol["auth"] = object{"authenticator": "bearertokenauth"}
		}
	}
	if o.Token != "" {
		all["extensions"] = object{"bearertokenauth": object{"token": o.Token}}
		service["extensions"] = []string{"bearertokenauth"}
	}
	return all
}

type object map[string]any

// Start starts the collector, or starts it again.
func (c *Collector) Start() {
	c.t.Helper()
	c.command = exec.Command(c.program, "--config=file:"+c.config)
	c.command.Stderr = os.Stderr
	must(c.t, c.command.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.command.Wait()
	}()
	c.ended = ended
	for end := time.Now().Add(timeout); !listens(c.GRPC) || !listens(c.HTTP); {
		select {
		case <-ended:
			c.t.Fatal("the collector does not start")
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			c.t.Fatalf("waited %v in vain for the collector", timeout)
		}
	}
}

func listens(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	connection.Close()
	return true
}

// Kill kills the collector, if it runs.
func (c *Collector) Kill() {
	if c.command == nil {
		return
	}
	_ = c.command.Process.Kill()
	<-c.ended
	c.command = nil
}

// build returns the path of the program.
func build(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	const script = "test/collector/build"
	for {
		if _, err := os.Stat(filepath.Join(dir, script)); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the working directory is not in Headgate's repository")
		}
		dir = filepath.Dir(dir)
	}
	command := exec.Command(filepath.Join(dir, script))
	command.Stderr = os.Stderr
	path, err := command.Output()
	must(t, err)
	return strings.TrimSpace(string(path))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
