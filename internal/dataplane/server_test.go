package dataplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/unit"
)

// part is one entry of a decoded frame.
type part struct {
	entry      unit.Change
	num, parts int
}

type decoded struct {
	dictionary, generation int
	parts                  []part
}

// decode reads a frame as docs/data-plane-api.md describes it.
func decode(body []byte) (decoded, error) {
	line, rest, ok := bytes.Cut(body, []byte("\n"))
	if !ok {
		return decoded{}, errors.New("no first line")
	}
	var d decoded
	var entries int
	var sum uint32
	if _, err := fmt.Sscanf(string(line), "headgate 1 %d %d %d %d", &d.dictionary, &d.generation, &entries, &sum); err != nil {
		return decoded{}, fmt.Errorf("first line %q: %w", line, err)
	}
	if got := crc32.ChecksumIEEE(rest); got != sum {
		return decoded{}, fmt.Errorf("checksum %d, want %d", got, sum)
	}
	for range entries {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			return decoded{}, errors.New("an entry is missing")
		}
		p, name, payload, err := decodeHead(string(line))
		if err != nil {
			return decoded{}, err
		}
		if name+payload > len(after) {
			return decoded{}, fmt.Errorf("%q is short of bytes", line)
		}
		p.entry.Name = string(after[:name])
		if !p.entry.Delete {
			p.entry.Payload = after[name : name+payload]
		}
		d.parts = append(d.parts, p)
		rest = after[name+payload:]
	}
	if len(rest) > 0 {
		return decoded{}, fmt.Errorf("%d bytes behind the last entry", len(rest))
	}
	return d, nil
}

func decodeHead(line string) (p part, name, payload int, err error) {
	if strings.HasPrefix(line, "del ") {
		p = part{entry: unit.Change{Delete: true}, num: 1, parts: 1}
		_, err = fmt.Sscanf(line, "del %s %d", &p.entry.Kind, &name)
		return p, name, 0, err
	}
	// The owner may be absent.
	if fields := strings.Fields(line); len(fields) == 8 {
		line, p.entry.Owner = strings.Join(fields[:7], " "), fields[7]
	}
	_, err = fmt.Sscanf(line, "put %s %d %s %d/%d %d %d",
		&p.entry.Kind, &p.entry.Needs, &p.entry.Version, &p.num, &p.parts, &name, &payload)
	p.entry.Version, p.entry.Same, _ = strings.Cut(p.entry.Version, "=")
	if err != nil {
		err = fmt.Errorf("%q: %w", line, err)
	}
	return p, name, payload, err
}

// join joins decoded parts to entries.
func join(parts []part) ([]unit.Change, error) {
	var entries []unit.Change
	var open *part
	for _, p := range parts {
		if p.num == 1 {
			if open != nil {
				return nil, errors.New("a unit begins before the last is complete")
			}
			open = &part{entry: p.entry, parts: p.parts}
			open.entry.Payload = nil
		}
		if open == nil || p.num != open.num+1 || p.parts != open.parts || p.entry.Name != open.entry.Name {
			return nil, fmt.Errorf("part %d/%d of %s out of order", p.num, p.parts, p.entry.Name)
		}
		open.num = p.num
		open.entry.Payload = append(open.entry.Payload, p.entry.Payload...)
		if p.num == p.parts {
			entries, open = append(entries, open.entry), nil
		}
	}
	if open != nil {
		return nil, errors.New("the last unit is not complete")
	}
	return entries, nil
}

// fake is the API without NGINX. If answer returns a status, its result is the
// response to a request.
type fake struct {
	socket string
	answer func(request *http.Request) (status int, body string)

	mu       sync.Mutex
	parts    []part
	frames   int
	requests []string
	conns    int
}

func serve(t *testing.T, answer func(*http.Request) (int, string)) *fake {
	t.Helper()
	f := &fake{socket: filepath.Join(t.TempDir(), "s"), answer: answer}
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(f)
	server.Listener.Close()
	server.Listener = listener
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if state == http.StateNew {
			f.conns++
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	if f.answer != nil {
		if status, body := f.answer(r); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, body)
			return
		}
	}
	if r.URL.Path == "/v1/apply" {
		body, err := io.ReadAll(io.LimitReader(r.Body, MaxFrame+1))
		if err == nil && len(body) > MaxFrame {
			err = errors.New("the frame is too large")
		}
		var d decoded
		if err == nil {
			d, err = decode(body)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
			return
		}
		f.parts = append(f.parts, d.parts...)
		f.frames++
	}
	fmt.Fprintf(w, `{"revision": %d, "memory": {"units": {"capacity": 10, "free": 4}}}`, f.frames)
}
