package nginx

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// outputs are kinds of standard output, each with a way to read what was written
// when the writers have ended.
func outputs(t *testing.T) map[string]func() (stdout *os.File, read func() string) {
	collect := func(r *os.File) func() string {
		t.Cleanup(func() { r.Close() })
		var text bytes.Buffer
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.Copy(&text, r)
		}()
		return func() string { <-done; return text.String() }
	}
	return map[string]func() (*os.File, func() string){
		"pipe": func() (*os.File, func() string) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			return w, collect(r)
		},
		"socket": func() (*os.File, func() string) {
			pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			return os.NewFile(uintptr(pair[0]), "socket"), collect(os.NewFile(uintptr(pair[1]), "socket"))
		},
		"file": func() (*os.File, func() string) {
			name := filepath.Join(t.TempDir(), "log")
			w, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			return w, func() string {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
		},
	}
}

// Lines of NGINX and of the controller arrive complete and in order on each kind of
// standard output.
func TestAccessLog(t *testing.T) {
	for name, open := range outputs(t) {
		t.Run(name, func(t *testing.T) {
			stdout, read := open()
			defer stdout.Close()
			log, err := OpenAccessLog(stdout)
			if err != nil {
				t.Fatal(err)
			}
			b := newFixture(t)
			b.renew(log)
			b.write("nginx.conf")
			if err := b.Test(t.Context(), b.Dir.Conf()); err != nil {
				t.Fatal(err)
			}
			b.start()
			io.WriteString(stdout, "one\n")
			b.mustGet("/two")
			if name == "file" { // NGINX writes the line after the response.
				eventually(t, "the line", func() bool { return strings.Contains(read(), "two") })
			}
			if err := b.Reload(); err != nil {
				t.Fatal(err)
			}
			io.WriteString(stdout, "three\n")
			b.mustGet("/four")
			if err := b.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			log.Close()
			log.Close()
			stdout.Close()
			lines := strings.Split(strings.TrimSpace(read()), "\n")
			if name == "file" {
				if got := strings.Join(lines, ","); got != "one,GET /two 200,three,GET /four 200" {
					t.Error(got)
				}
				return
			}
			for _, want := range []string{"one", "GET /two 200", "three", "GET /four 200"} {
				if count(lines, want) != 1 {
					t.Errorf("%q stands %d times in %q", want, count(lines, want), lines)
				}
			}
		})
	}
}

// A pipe gets room for long lines of all workers.
func TestStdoutIsEnlarged(t *testing.T) {
	stdout, _ := outputs(t)["pipe"]()
	defer stdout.Close()
	log, err := OpenAccessLog(stdout)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if size, err := unix.FcntlInt(stdout.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || size < pipeBytes {
		t.Errorf("%v: the pipe has %d bytes, want %d", err, size, pipeBytes)
	}
}

func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

func TestAccessLogPath(t *testing.T) {
	want := map[string]string{"pipe": "/dev/stdout", "file": "/dev/stdout", "socket": "/proc/self/fd/3"}
	for name, open := range outputs(t) {
		stdout, _ := open()
		log, err := OpenAccessLog(stdout)
		if err != nil {
			t.Fatal(err)
		}
		if log.Path() != want[name] {
			t.Errorf("%s: %s", name, log.Path())
		}
		log.Close()
		stdout.Close()
	}
}
