package proxyheader

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	proxyproto "github.com/pires/go-proxyproto"
)

// fed is a connection with bytes to read.
type fed struct {
	net.Conn
	bytes.Reader
}

func (f *fed) Read(b []byte) (int, error)      { return f.Reader.Read(b) }
func (f *fed) SetReadDeadline(time.Time) error { return nil }

func feed(text string) *fed { return &fed{Reader: *bytes.NewReader([]byte(text))} }

func version2(t testing.TB, command proxyproto.ProtocolVersionAndCommand, from, to string) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort(to)))
	h.Command = command
	if err := h.SetTLVs([]proxyproto.TLV{{Type: proxyproto.PP2_TYPE_ALPN, Value: []byte("h2")}}); err != nil {
		t.Fatal(err)
	}
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadHeader: both versions are read, and nothing behind them is lost.
func TestReadHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ header, from, to string }{
		{"PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n", "192.0.2.1:1000", "192.0.2.2:443"},
		{"PROXY TCP6 2001:db8::1 2001:db8::2 1000 443\r\n", "[2001:db8::1]:1000", "[2001:db8::2]:443"},
		{"PROXY UNKNOWN\r\n", "", ""},
		{version2(t, proxyproto.PROXY, "192.0.2.1:1000", "192.0.2.2:443"), "192.0.2.1:1000", "192.0.2.2:443"},
		{version2(t, proxyproto.PROXY, "[2001:db8::1]:1", "[2001:db8::2]:2"), "[2001:db8::1]:1", "[2001:db8::2]:2"},
		{version2(t, proxyproto.LOCAL, "192.0.2.1:1000", "192.0.2.2:443"), "", ""},
	} {
		for _, behind := range []string{"", "hello", strings.Repeat("x", 3000)} {
			f := feed(c.header + behind)
			from, to, rest, err := Read(f, Timeout)
			if err != nil {
				t.Errorf("%q: %v", c.header, err)
				continue
			}
			if c.from == "" && (from.IsValid() || to.IsValid()) || c.from != "" && (from.String() != c.from || to.String() != c.to) {
				t.Errorf("%q: from %s to %s", c.header, from, to)
			}
			more, err := io.ReadAll(&f.Reader)
			if err != nil || string(rest)+string(more) != behind {
				t.Errorf("%q: %d and %d bytes behind it, want %d", c.header, len(rest), len(more), len(behind))
			}
		}
	}
	for _, text := range []string{
		"", "P", "PROXY", "GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1000\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1000 99999\r\n",
		"PROXY TCP4 ::1 ::1 1 1\r\n", "PROXY " + strings.Repeat("x", 200), version2(t, proxyproto.PROXY, "192.0.2.1:1", "192.0.2.2:2")[:20],
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff" + strings.Repeat("x", 0xffff),
	} {
		if from, _, _, err := Read(feed(text), Timeout); err == nil {
			t.Errorf("%.60q is read as from %s", text, from)
		}
	}
}

// TestHeader: what is written is read again, of one family at a time.
func TestHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"192.0.2.1:1", "192.0.2.2:2", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"},
		{"[2001:db8::1]:1", "[2001:db8::2]:2", "PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n"},
		{"192.0.2.1:1", "[2001:db8::2]:2", "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n"},
	} {
		if got := string(Format(netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to))); got != c.want {
			t.Errorf("from %s to %s: %q", c.from, c.to, got)
		}
	}
	if got := string(Format(netip.AddrPort{}, netip.AddrPort{})); got != "PROXY UNKNOWN\r\n" {
		t.Errorf("without addresses: %q", got)
	}
}

// FuzzHeader: for any bytes of a client, the header is refused, or its addresses can be passed
// on, and all behind it is kept.
func FuzzHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\nhello"))
	f.Add([]byte("PROXY UNKNOWN a b\r\n"))
	f.Add([]byte(version2(f, proxyproto.PROXY, "192.0.2.1:1000", "192.0.2.2:443")))
	f.Add([]byte(version2(f, proxyproto.LOCAL, "[2001:db8::1]:1", "[2001:db8::2]:2") + "x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := feed(string(text))
		from, to, rest, err := Read(c, Timeout)
		if err != nil {
			return
		}
		more, err := io.ReadAll(&c.Reader)
		if err != nil || !bytes.HasSuffix(text, append(rest, more...)) {
			t.Errorf("%q: %q and %q are behind it", text, rest, more)
		}
		if !from.IsValid() || !to.IsValid() {
			return
		}
		again, _, _, err := Read(feed(string(Format(from, to))), Timeout)
		if err != nil || again.Addr().Unmap() != from.Addr().Unmap() || again.Port() != from.Port() {
			t.Errorf("%q is passed on as %q, which is read as %s: %v", text, Format(from, to), again, err)
		}
	})
}
