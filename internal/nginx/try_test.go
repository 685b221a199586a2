package nginx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/nginx/rundir"
)

// TestTry: lines are tested alone, and the same ones once.
func TestTry(t *testing.T) {
	found, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Capabilities: found})
	asked := 0
	trial := func(http, location string) Trial {
		return Trial{
			Lines: func(folder string) ([]string, []string) {
				if folder != "" {
					asked++
				}
				return []string{http}, []string{location}
			},
			Files: map[string][]byte{"files/one": []byte("add_header X-One 1;\n")},
		}
	}
	if err := p.Try(t.Context(), trial("gzip on;", "include files/one;")); err != nil {
		t.Error(err)
	}
	var rejected *ConfError
	for _, c := range [][2]string{{"gzip perhaps;", ""}, {"", "include files/two;"}, {"", "nonsense;"}} {
		before := asked
		for range 2 {
			if err := p.Try(t.Context(), trial(c[0], c[1])); !errors.As(err, &rejected) || strings.Contains(err.Error(), "headgate-try") {
				t.Errorf("%v: %v", c, err)
			}
		}
		if asked != before+1 {
			t.Errorf("%v: tested %d times", c, asked-before)
		}
	}
}

// TestTryOwnFiles: no log is in the run directory, by any name.
func TestTryOwnFiles(t *testing.T) {
	found, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root := tempDir(t)
	dir := filepath.Join(root, "run")
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	err = os.MkdirAll(filepath.Join(dir, "lua"), 0o700)
	for _, link := range [][2]string{{conf, "link.conf"}, {filepath.Join(dir, "lua"), "folder"}} {
		err = errors.Join(err, os.Symlink(link[0], filepath.Join(root, link[1])))
	}
	if err := errors.Join(err, os.WriteFile(conf, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	held, err := rundir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	before, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Capabilities: found, Dir: held})
	for name, allowed := range map[string]bool{
		"run/nginx.conf": false, "run/new.log": false, "run/lua/new.lua": false, "link.conf": false, "folder/new.lua": false, "folder/../new.log": false, "run/../run/a.log": false, "a/../run/a.log": false,
		"running.log": true, "a.log": true,
	} {
		for _, lines := range [][2][]string{{{"error_log " + root + "/" + name + " notice;"}, nil}, {nil, {"access_log " + root + "/" + name + " combined;"}}} {
			err := p.Try(t.Context(), Trial{Lines: func(string) ([]string, []string) { return lines[0], lines[1] }})
			if rejected := (*ConfError)(nil); allowed != (err == nil) || err != nil && !errors.As(err, &rejected) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if files, err := filepath.Glob(dir + "/*"); err != nil || !slices.Equal(files, before) {
		t.Errorf("%v, the directory has %v, and had %v", err, files, before)
	}
	if files, err := filepath.Glob(dir + "/lua/*"); err != nil || len(files) != 0 {
		t.Errorf("%v, the directory of Lua has %v", err, files)
	}
}

// TestTryAgain: what is not the configuration's fault is tried again.
func TestTryAgain(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "nginx")
	p := New(Options{Capabilities: Capabilities{Binary: binary}})
	for _, c := range []struct {
		says     string
		rejected bool
	}{
		{`echo 'nginx: [emerg] mkdir() "/tmp/x/proxy" failed (28: No space left on device)' >&2; exit 1`, false},
		{`echo 'nginx: [emerg] open() "/tmp/x/rules" failed (24: Too many open files) in /tmp/x/nginx.conf:9' >&2; exit 1`, false},
		{`echo 'nginx: [emerg] unknown "a" variable' >&2; exit 1`, true},
		{`echo 'nginx: [emerg] open() "/no/a.log" failed (2: No such file or directory)' >&2; exit 1`, true},
		{`echo 'nginx: [emerg] open() "/a.log" failed (28: No space left on device)' >&2; exit 1`, false},
		{`echo 'nginx: [emerg] malloc(16) failed (12: Cannot allocate memory)' >&2; exit 1`, false},
		{`echo 'nginx: [emerg] SSL_CTX_set_cipher_list("X") failed (SSL: error:0A080041:SSL routines::malloc failure)' >&2; exit 1`, false},
		{`echo 'nginx: [emerg] SSL_CTX_set_cipher_list("X") failed (SSL: error:0A0000B9:SSL routines::no cipher match)' >&2; exit 1`, true},
		{`echo 'nginx: error while loading shared libraries: libx.so: cannot open' >&2; exit 127`, false},
		{`echo 'nginx: [emerg] open() "/nowhere/log" failed (2: No such file or directory)' >&2; exit 1`, true},
		{`echo 'nginx: [emerg] open() "/nowhere/log" failed (24: Too many open files)' >&2; exit 1`, false},
		{`echo "nginx: [emerg] open() \"$2/pid\" failed (13: Permission denied)" >&2; exit 1`, false},
		{`echo 'nginx: [emerg] host not found in "logs.test" in /tmp/x/nginx.conf:9' >&2; exit 1`, false},
		{`exit 1`, false},
		{`kill -9 $$`, false},
		{`echo 'nginx: [emerg] open() "/tmp/x/rules" failed (2: No such file or directory) in /tmp/x/nginx.conf:9' >&2; exit 1`, true},
		{`echo 'nginx: [emerg] "rules" directive read() failed (28: No space left on device) in /tmp/x/nginx.conf:9' >&2; exit 1`, true},
	} {
		if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+c.says+"\n"), 0o700); err != nil { //nolint:gosec // It is a program.
			t.Fatal(err)
		}
		trial := Trial{Lines: func(string) ([]string, []string) { return nil, []string{c.says} }}
		err := p.Try(t.Context(), trial)
		rejected := (*ConfError)(nil)
		if _, known := p.Tried(trial); err == nil || errors.As(err, &rejected) != c.rejected || known != c.rejected {
			t.Errorf("%s: %v, known: %v", c.says, err, known)
		}
	}
}

// TestShareOfTries: a namespace has some tries at once and one more every while, those of others
// are their own, and slow ones count as more.
func TestShareOfTries(t *testing.T) {
	var of tried
	now := time.Unix(1_800_000_000, 0)
	takes := func(namespace string) (n int) {
		for n = 0; of.take(namespace, now) == nil; n++ {
		}
		return n
	}
	for _, c := range []struct {
		namespace string
		after     time.Duration
		want      int
	}{{"evil", 0, tryBurst}, {"shop", 0, tryBurst}, {"evil", tryInterval, 1}, {"evil", tryInterval / 2, 0}, {"evil", tryInterval / 2, 1}, {"evil", time.Hour, tryBurst}} {
		now = now.Add(c.after)
		if got := takes(c.namespace); got != c.want {
			t.Errorf("after %v, %s has %d tries, want %d", c.after, c.namespace, got, c.want)
		}
	}
	of.took("evil", slowTry-1)
	of.took("shop", slowTry)
	now = now.Add(10 * tryInterval)
	if evil, shop := takes("evil"), takes("shop"); evil != 10 || shop != tryBurst {
		t.Errorf("after fast tries %d, after a slow one long ago %d", evil, shop)
	}
	of.took("evil", slowTry)
	now = now.Add(10 * tryInterval)
	if evil := takes("evil"); evil != 0 {
		t.Errorf("after a slow try %d", evil)
	}
}

// TestTriedIsBounded: what was not used for longest makes room, of the same namespace, or of the
// one that has most.
func TestTriedIsBounded(t *testing.T) {
	var kept tried
	known := func(key string) bool {
		_, known := kept.result(key)
		return known
	}
	kept.keep("shop", "first", false, nil)
	for i := range triedOfNamespace + 10 {
		kept.keep("evil", strconv.Itoa(i), false, nil)
		if !known("0") {
			t.Fatalf("a result that is used was dropped after %d others", i)
		}
	}
	if known("1") || !known("first") || kept.shares["evil"].results != triedOfNamespace {
		t.Errorf("%d results of one namespace are kept, want %d", kept.shares["evil"].results, triedOfNamespace)
	}
	for namespace := range 2 * maxTried / triedOfNamespace {
		for i := range triedOfNamespace - 1 {
			kept.keep(fmt.Sprint("evil", namespace), fmt.Sprint(namespace, "/", i), false, nil)
		}
	}
	if len(kept.results) != maxTried || !known("first") {
		t.Errorf("%d results are kept, want %d, among them one of a namespace without others: %v", len(kept.results), maxTried, known("first"))
	}
}

// TestForgetOutside: results that depend on files and names are forgotten alone.
func TestForgetOutside(t *testing.T) {
	found, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Capabilities: found})
	folder := filepath.Join(t.TempDir(), "logs")
	trial := func(outside bool) Trial {
		return Trial{Outside: outside, Lines: func(string) ([]string, []string) {
			return []string{fmt.Sprintf("error_log %s/%v.log;", folder, outside)}, nil
		}}
	}
	try := func(outside bool) bool { return p.Try(t.Context(), trial(outside)) == nil }
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if !try(true) || !try(false) {
		t.Fatal("NGINX does not open logs")
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if got := try(true); got != want {
			t.Errorf("taken: %v, want %v", got, want)
		}
		if !try(false) {
			t.Error("what does not depend on files was forgotten")
		}
		p.ForgetOutside()
	}
	if n := p.tried.shares[""].results; n != 1 {
		t.Errorf("%d results, want 1", n)
	}
}

// TestOutside: a log that can't be opened and a name are not the configuration's fault alone.
func TestOutside(t *testing.T) {
	for reason, want := range map[string]bool{
		`nginx: [emerg] host not found in syslog server "logs.test" in /run/nginx.conf:9`: true,
		`nginx: [emerg] open() "/logs/a.log" failed (2: No such file or directory)`:       true,
		`nginx: [emerg] open() "/logs/a.log" failed (28: No space left on device)`:        true,
		`nginx: [emerg] open() "/a" failed (2: No such file) in /run/nginx.conf:9`:        true,
		`nginx: [emerg] unknown directive "host not found" in /run/nginx.conf:9`:          false,
		`nginx: [emerg] mkdir() "/tmp/x" failed (28: No space left on device)`:            false,
	} {
		if got := confError(reason).Outside(); got != want {
			t.Errorf("%s: %v, want %v", reason, got, want)
		}
	}
}
