package stream_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	proxyproto "github.com/pires/go-proxyproto"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/porttest"
)

// TestPROXY: the header of the client, in both versions, is passed on in version 1, or
// dropped; without one from the client its own address is passed on.
func TestPROXY(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{"127.0.0.1", "::1"} {
		s := start(t)
		s.format("$status $remote_addr $proxy_protocol_addr")
		// The endpoint sends back the first line or word, and then echoes.
		e := porttest.Serve(t, net.JoinHostPort(ip, "0"), func(c *net.TCPConn) {
			r := bufio.NewReader(c)
			line, _ := r.ReadString('\n')
			_, _ = io.WriteString(c, line)
			_, _ = io.Copy(c, r)
		})
		from, to := net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 7}, net.TCPAddr{IP: net.ParseIP("192.0.2.2"), Port: 8}
		two, err := proxyproto.HeaderProxyFromAddrs(2, &from, &to).Format()
		must(t, err)
		const one = "PROXY TCP6 2001:db8::1 2001:db8::2 5 6\r\n"
		for _, c := range []struct {
			about        string
			in, out      bool
			header, want string
			client       string
		}{
			{"neither", false, false, "", "", ip + " "},
			{"in, version 1", true, false, one, "", "2001:db8::1 2001:db8::1"},
			{"in, version 2", true, false, string(two), "", "192.0.2.1 192.0.2.1"},
			{"both, version 1", true, true, one, one, "2001:db8::1 2001:db8::1"},
			{"both, version 2", true, true, string(two), "PROXY TCP4 192.0.2.1 192.0.2.2 7 8\r\n", "192.0.2.1 192.0.2.1"},
			{"both, unknown", true, true, "PROXY UNKNOWN\r\n", "self", ip + " "},
			{"out", false, true, "", "self", ip + " "},
		} {
			s.set(model.TCP, func(m *model.Stream) { m.ProxyIn, m.ProxyOut = c.in, c.out }, e)
			conn := s.dial("tcp", ip)
			if c.want == "self" {
				family := map[string]string{"127.0.0.1": "TCP4", "::1": "TCP6"}[ip]
				_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
				c.want = "PROXY " + family + " " + ip + " " + ip + " " + port + " " + itoa(int(s.port)) + "\r\n"
			}
			_, err := io.WriteString(conn, c.header+"hello\nand more")
			must(t, err)
			must(t, conn.(*net.TCPConn).CloseWrite())
			if got := readAll(t, conn); got != c.want+"hello\nand more" {
				t.Errorf("%s, %s: the endpoint got %q", ip, c.about, got)
			}
			eventually(t, "the line is logged", func() bool { return len(s.log.list()) > 0 })
			eventually(t, "the client is logged", func() bool {
				lines := s.log.list()
				return lines[len(lines)-1] == "200 "+c.client
			})
		}
		s.set(model.TCP, func(m *model.Stream) { m.ProxyIn = true }, e)
		bad := s.dial("tcp", ip)
		_, err = io.WriteString(bad, "GET / HTTP/1.1\r\n\r\n")
		must(t, err)
		if got, _ := io.ReadAll(bad); len(got) > 0 {
			t.Errorf("without a header the endpoint got something: %q", got)
		}
		eventually(t, "400 is logged", func() bool {
			lines := s.log.list()
			return strings.HasPrefix(lines[len(lines)-1], "400 ")
		})
	}
}
