package dataplane_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// clockTimeout bounds a step at which NGINX's clock jumps: what takes longer
// waits for the clock.
const clockTimeout = headgatetest.Timeout

// NGINX's wall clock jumps a day ahead, two days back and home again. Nothing
// waits for it, is given up because of it, or is served otherwise. It is not
// parallel: its NGINX is named by the environment.
func TestClockJumps(t *testing.T) {
	headgatetest.Long(t)
	clock := startClock(t)
	release := make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		served("slow", slow) + headgatetest.Ingress("slow", "slow.test", "/", "slow") + headgatetest.Ingress("a", "known.test", "/", "one")})
	for number, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, 0} {
		kept, waiting := &line{port: g.HTTP}, &line{port: g.HTTP}
		defer kept.close()
		defer waiting.close()
		ask(t, kept, "known.test")
		if err := waiting.send("GET / HTTP/1.1\r\nHost: slow.test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		clock.jump(jump)
		// A connection that was there before serves on.
		if shown := ask(t, kept, "known.test"); shown.Sub(time.Now().Add(jump)).Abs() > time.Minute {
			t.Fatalf("NGINX's clock shows %v after a jump to %v from now", shown, jump)
		}
		fresh := fmt.Sprintf("fresh-%d", number)
		g.Apply(headgatetest.Ingress(fresh, fresh+".test", "/", "one"))
		wantEcho(t, g.Get(fresh+".test", "/"), "one")
		ask(t, kept, fresh+".test")
		// So does a request that waits for its backend.
		select {
		case release <- struct{}{}:
		case <-time.After(clockTimeout):
			t.Fatalf("no request waits for its backend at the jump to %v", jump)
		}
		if response, err := waiting.answer(); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("a request that was waiting at the jump to %v: %v, %v", jump, response, err)
		}
		reload(t, g)
		wantEcho(t, g.Get("known.test", "/"), "one")
		wantEcho(t, g.Get(fresh+".test", "/"), "one")
		if took := time.Since(began); took > clockTimeout {
			t.Errorf("the jump to %v took %v, want at most %v", jump, took, clockTimeout)
		}
	}
}

// ask asks over the line, which must have stayed open, and returns what the
// answer's date is.
func ask(t *testing.T, l *line, host string) time.Time {
	t.Helper()
	open := l.connection
	if err := l.send("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if open != nil && l.connection != open {
		t.Error("the connection was closed")
	}
	response, err := l.answer()
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("asking for %s: %v, %v", host, response, err)
	}
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		t.Fatal(err)
	}
	return date
}

// A clock is the wall clock of the NGINX that a test starts after it.
type clock struct {
	t    *testing.T
	file string
}

// startClock makes $HEADGATE_NGINX an NGINX whose wall clock can jump. Its
// monotonic clock runs on, as it does when a machine's time is set.
func startClock(t *testing.T) *clock {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(libraries) != 1 {
		t.Fatalf("libfaketime: %q, %v; `scripts/install-deps test` installs it", libraries, err)
	}
	nginx := os.Getenv("HEADGATE_NGINX")
	if nginx == "" {
		nginx = "nginx"
	}
	if nginx, err = exec.LookPath(nginx); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// Workers read the file.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	// A copy, since an NGINX in a root of its own sees /tmp alone.
	library, err := os.ReadFile(libraries[0])
	if err != nil {
		t.Fatal(err)
	}
	preload := filepath.Join(dir, "faketime.so")
	if err := os.WriteFile(preload, library, 0o644); err != nil {
		t.Fatal(err)
	}
	c := &clock{t: t, file: filepath.Join(dir, "clock")}
	c.jump(0)
	// Workers have only the variables that the configuration names.
	script := fmt.Sprintf("#!/bin/sh\nexport LD_PRELOAD=%s FAKETIME_TIMESTAMP_FILE=%s FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n"+
		"exec %s -g 'env FAKETIME_TIMESTAMP_FILE; env FAKETIME_NO_CACHE; env FAKETIME_DONT_FAKE_MONOTONIC;' \"$@\"\n", preload, c.file, nginx)
	wrapper := filepath.Join(dir, "nginx")
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HEADGATE_NGINX", wrapper)
	return c
}

// jump sets the clock so far from the machine's.
func (c *clock) jump(offset time.Duration) {
	c.t.Helper()
	// In one step: NGINX reads the file all the time.
	next := c.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+ds\n", int(offset/time.Second)), 0o644); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(next, c.file); err != nil {
		c.t.Fatal(err)
	}
}
