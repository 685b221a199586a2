package clienthello_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/stream/clienthello"
)

// sent is what a client of Go sends first.
func sent(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		defer client.Close()
		// There is no answer.
		_ = tls.Client(client, config).Handshake()
	}()
	header := make([]byte, 5)
	if _, err := io.ReadFull(server, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(header[3])<<8|int(header[4]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return append(header, body...)
}

func hello(t testing.TB, name string) []byte {
	t.Helper()
	return sent(t, &tls.Config{ServerName: name, InsecureSkipVerify: true})
}

// records is a message in records of so many bytes.
func records(message []byte, size int) (data []byte) {
	for piece := range slices.Chunk(message, size) {
		data = append(data, 22, 3, 1, byte(len(piece)>>8), byte(len(piece)))
		data = append(data, piece...)
	}
	return data
}

// message is a ClientHello with these extensions.
func message(extensions ...[]byte) []byte {
	all := bytes.Join(extensions, nil)
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 4, 0x0a, 0x0a, 0x13, 1, 1, 0) // A suite of GREASE comes first.
	body = append(body, byte(len(all)>>8), byte(len(all)))
	body = append(body, all...)
	return append([]byte{1, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

func extension(kind int, content ...byte) []byte {
	return append([]byte{byte(kind >> 8), byte(kind), byte(len(content) >> 8), byte(len(content))}, content...)
}

func names(list ...string) []byte {
	var content []byte
	for _, name := range list {
		content = append(append(content, 0, byte(len(name)>>8), byte(len(name))), name...)
	}
	return extension(0, append([]byte{byte(len(content) >> 8), byte(len(content))}, content...)...)
}

var grease = extension(0x0a0a, 0)

func TestName(t *testing.T) {
	plain := message(names("a.test"))
	long := strings.Repeat("a", 251) + ".com"
	for _, c := range []struct {
		what, name string
		data       []byte
	}{
		{"a client of Go", "www.example.com", hello(t, "www.example.com")},
		{"one without the newest groups", "a.test", sent(t, &tls.Config{ServerName: "a.test", MaxVersion: tls.VersionTLS12})},
		{"an upper-case name", "www.example.com", records(message(names("WWW.Example.COM")), 9000)},
		{"a dot at the end", "a.test", records(message(names("a.test.")), 9000)},
		{"a long name", long, records(message(names(long)), 9000)},
		{"GREASE", "a.test", records(message(grease, names("a.test"), extension(0x2a2a), extension(0xfafa, 1, 2, 3)), 9000)},
		{"records of one byte", "a.test", records(plain, 1)},
		{"a record that ends in the header of the message", "a.test", records(plain, 3)},
		{"early data behind it", "a.test", append(records(plain, 9000), 23, 3, 3, 0, 1, 7)},
		{"an encrypted ClientHello: the outer name counts", "outer.test", records(message(names("outer.test"), extension(0xfe0d, 0, 0, 1, 0, 1, 9)), 9000)},
		{"a large extension", "a.test", records(message(extension(21, make([]byte, 12000)...), names("a.test")), 9000)},
	} {
		var r clienthello.Reader
		if name, err := r.Name(c.data); name != c.name || err != nil {
			t.Errorf("%s: %q, %v", c.what, name, err)
		}
		pieces(t, c.what, c.data, c.name)
	}
}

// pieces gives the bytes one by one, at a new place each time, and wants the same name.
func pieces(t *testing.T, what string, data []byte, want string) {
	t.Helper()
	var r clienthello.Reader
	for i := 1; i <= len(data); i++ {
		part := slices.Clone(data[:i])
		name, err := r.Name(part)
		clear(part)
		if err == nil {
			if name != want {
				t.Errorf("%s, byte by byte: %q", what, name)
			}
			return
		}
		if !errors.Is(err, clienthello.ErrMore) {
			t.Errorf("%s, after %d bytes: %v", what, i, err)
			return
		}
	}
	t.Errorf("%s, byte by byte: no name", what)
}

func TestNoName(t *testing.T) {
	plain := message(names("a.test"))
	changed := func(at int, to byte) []byte {
		m := slices.Clone(plain)
		m[at] = to
		return records(m, 9000)
	}
	for what, data := range map[string][]byte{
		"no name":                    hello(t, ""),
		"an address":                 sent(t, &tls.Config{ServerName: "192.0.2.1", InsecureSkipVerify: true}),
		"http":                       []byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
		"SSL 2":                      {0x80, 46, 1, 3, 1, 0, 21},
		"an alert":                   {21, 3, 1, 0, 2, 2, 40},
		"an empty record":            {22, 3, 1, 0, 0},
		"a record that is too large": {22, 3, 1, 0x40, 1},
		"another message":            changed(0, 2),
		"a message that is too long": changed(1, 1),
		"bytes behind the message":   records(append(slices.Clone(plain), 0), 9000),
		"SSL 3 in the record":        append([]byte{22, 2, 0}, records(plain, 9000)[3:]...),
		"two names":                  records(message(names("a.test", "b.test")), 9000),
		"two lists of names":         records(message(names("a.test"), names("b.test")), 9000),
		"an empty name":              records(message(names("")), 9000),
		"a dot as name":              records(message(names(".")), 9000),
		"a name that is too long":    records(message(names(strings.Repeat("a", 256))), 9000),
		"a zero in the name":         records(message(names("a.test\x00.b.test")), 9000),
		"another kind of name":       records(message(extension(0, 0, 4, 1, 0, 1, 'a')), 9000),
		"a name list that is short":  records(message(extension(0, 0, 9, 0, 0, 1, 'a')), 9000),
		"a long session":             changed(4+2+32, 33),
		"no suites":                  changed(4+2+32+2, 0),
		"half an extension":          records(message([]byte{0, 0, 0}), 9000),
		"no end":                     make22(clienthello.MaxBytes),
	} {
		var r clienthello.Reader
		if name, err := r.Name(data); !errors.Is(err, clienthello.ErrNot) {
			t.Errorf("%s: %q, %v", what, name, err)
		}
	}
}

// make22 is the beginning of a message of 16 KiB.
func make22(n int) []byte {
	message := append([]byte{1, 0, 0x3f, 0xfc}, make([]byte, n)...)
	return records(message, 1)[:n]
}

// A client that sends its bytes one by one costs about as much as one that sends them at
// once.
func TestManyPiecesCostLittle(t *testing.T) {
	data := records(message(extension(21, make([]byte, 2500)...), names("a.test")), 1)
	var r clienthello.Reader
	allocations := testing.AllocsPerRun(1, func() {
		r = clienthello.Reader{}
		for i := range data {
			if _, err := r.Name(data[:i]); !errors.Is(err, clienthello.ErrMore) {
				t.Fatal(err)
			}
		}
	})
	if allocations > 100 {
		t.Errorf("%v allocations for %d pieces", allocations, len(data))
	}
}

// FuzzName compares the names with those that the server of Go reads, and whole messages with
// pieces.
func FuzzName(f *testing.F) {
	for _, name := range []string{"www.example.com", "A.test", ""} {
		f.Add(hello(f, name), 7)
	}
	f.Add(records(message(grease, names("a.test"), extension(0xfe0d, 0, 0, 1)), 5), 1)
	f.Add(append(records(message(names("a.test")), 100), 23, 3, 3, 0, 1, 7), 3)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var whole, part clienthello.Reader
		name, err := whole.Name(data)
		size = max(1, size&0x3ff)
		for end := min(size, len(data)); ; end = min(end+size, len(data)) {
			got, gotErr := part.Name(slices.Clone(data[:end]))
			if errors.Is(gotErr, clienthello.ErrMore) && end < len(data) {
				continue
			}
			if got != name || !errors.Is(gotErr, err) {
				t.Fatalf("in pieces it is %q, %v, as a whole %q, %v", got, gotErr, name, err)
			}
			break
		}
		if err == nil {
			compare(t, data, name)
		}
	})
}

// compare has the server of Go read the name, unless it refuses the message.
func compare(t *testing.T, data []byte, name string) {
	t.Helper()
	read := "none"
	server := tls.Server(replay{bytes.NewReader(data)}, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		read = strings.ToLower(info.ServerName)
		return nil, errors.New("that is all")
	}})
	_ = server.Handshake() // It ends with an error in any case.
	if read != "none" && read != name && read != "" {
		t.Fatalf("the name is %q, and %q for Go", name, read)
	}
}

// A replay is a connection that sends what was recorded.
type replay struct{ *bytes.Reader }

func (replay) Write(b []byte) (int, error)      { return len(b), nil }
func (replay) Close() error                     { return nil }
func (replay) LocalAddr() net.Addr              { return nil }
func (replay) RemoteAddr() net.Addr             { return nil }
func (replay) SetDeadline(time.Time) error      { return nil }
func (replay) SetReadDeadline(time.Time) error  { return nil }
func (replay) SetWriteDeadline(time.Time) error { return nil }

func BenchmarkName(b *testing.B) {
	data := hello(b, "www.example.com")
	for b.Loop() {
		var r clienthello.Reader
		if _, err := r.Name(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGo is what the library of Go takes for the same.
func BenchmarkGo(b *testing.B) {
	data := hello(b, "www.example.com")
	for b.Loop() {
		_ = tls.Server(replay{bytes.NewReader(data)}, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, io.EOF
		}}).Handshake()
	}
}
