package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// socketHosts are the ways to a backend for WebSockets.
var socketHosts = []string{"plain", "ws", "https", "wss"}

// startSockets runs Headgate before a backend with and without TLS.
func startSockets(t *testing.T, server *socketServer) *headgatetest.Instance {
	t.Helper()
	cleartext, secure := server.start(t, false), server.start(t, true)
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: served("plain", headgatetest.Service("plain"), cleartext) +
		served("ws", speaking("ws", "kubernetes.io/ws"), cleartext) + served("wss", speaking("wss", "kubernetes.io/wss"), secure) +
		served("https", headgatetest.Service("https"), secure, "backend-protocol: HTTPS")})
}

// everySocket does something by ws and wss, at each host.
func everySocket(t *testing.T, do func(t *testing.T, scheme, host string)) {
	t.Helper()
	for _, host := range socketHosts {
		for _, scheme := range []string{"ws", "wss"} {
			t.Run(scheme+" to "+host, func(t *testing.T) { do(t, scheme, host) })
		}
	}
}

func mustConnect(t *testing.T, g *headgatetest.Instance, scheme, host, path string, mode websocket.CompressionMode) *websocket.Conn {
	t.Helper()
	c, _, err := connect(withTimeout(t), g, scheme, host, path, mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// roundTrip sends a message in parts and expects it back.
func roundTrip(ctx context.Context, c *websocket.Conn, kind websocket.MessageType, message []byte, parts int) error {
	sent := make(chan error, 1)
	go func() {
		w, err := c.Writer(ctx, kind)
		for i := 0; i < parts && err == nil; i++ {
			_, err = w.Write(message[i*len(message)/parts : (i+1)*len(message)/parts])
		}
		if err == nil {
			err = w.Close()
		}
		sent <- err
	}()
	got, back, err := c.Read(ctx)
	if err = errors.Join(err, <-sent); err != nil {
		return err
	}
	if got != kind || !bytes.Equal(back, message) {
		return fmt.Errorf("sent %d bytes as %s, got %d as %s", len(message), kind, len(back), got)
	}
	return nil
}

// TestWebSocketEcho: text and bytes of all sizes, compressed and not, whole and in fragments,
// with a subprotocol, and to the page's own host alone.
func TestWebSocketEcho(t *testing.T) {
	t.Parallel()
	g := startSockets(t, &socketServer{})
	random := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(random)
	text := []byte(strings.Repeat("grüße, ", 100_000))
	everySocket(t, func(t *testing.T, scheme, host string) {
		for mode, name := range map[websocket.CompressionMode]string{
			websocket.CompressionDisabled: "", websocket.CompressionContextTakeover: "permessage-deflate",
		} {
			c, response, err := connect(withTimeout(t), g, scheme, host, "/echo", mode)
			if err != nil {
				t.Fatal(err)
			}
			if got := response.Header.Get("Sec-WebSocket-Extensions"); !strings.HasPrefix(got, name) || name == "" && got != "" {
				t.Errorf("mode %d: the extensions are %q", mode, got)
			}
			if c.Subprotocol() != "chat" {
				t.Errorf("the subprotocol is %q", c.Subprotocol())
			}
			for _, m := range []struct {
				kind    websocket.MessageType
				message []byte
				parts   int
			}{
				{websocket.MessageText, []byte("hello"), 1}, {websocket.MessageText, nil, 1}, {websocket.MessageBinary, random[:1], 1},
				{websocket.MessageBinary, random[:65535], 1}, {websocket.MessageBinary, random[:65536], 7}, {websocket.MessageBinary, random, 100},
				{websocket.MessageText, text, 1}, {websocket.MessageText, text, 50},
			} {
				if err := roundTrip(withTimeout(t), c, m.kind, m.message, m.parts); err != nil {
					t.Fatalf("mode %d, %d bytes in %d parts: %v", mode, len(m.message), m.parts, err)
				}
			}
			if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
				t.Error(err)
			}
		}
	})
	client := g.NewClient(false)
	_, response, err := websocket.Dial(withTimeout(t), "wss://ws.test/echo", &websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"Origin": {"https://other.test"}}})
	if err == nil || response == nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("another page connects: %v, %v", response, err)
	}
}

// TestWebSocketClose: codes and reasons pass both ways, pings are answered, and a backend that
// dies ends the connection.
func TestWebSocketClose(t *testing.T) {
	t.Parallel()
	server := &socketServer{closed: make(chan error, 1)}
	g := startSockets(t, server)
	everySocket(t, func(t *testing.T, scheme, host string) {
		for _, code := range []websocket.StatusCode{websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusPolicyViolation, 4321} {
			var end websocket.CloseError
			c := mustConnect(t, g, scheme, host, fmt.Sprintf("/close?code=%d", code), websocket.CompressionDisabled)
			if _, _, err := c.Read(withTimeout(t)); !errors.As(err, &end) || end.Code != code || end.Reason != "the backend says so" {
				t.Errorf("the backend closed with %d: %v", code, err)
			}
			c = mustConnect(t, g, scheme, host, "/wait", websocket.CompressionDisabled)
			if err := c.Close(code, "the client says so"); err != nil {
				t.Error(err)
			}
			if err := <-server.closed; !errors.As(err, &end) || end.Code != code || end.Reason != "the client says so" {
				t.Errorf("the client closed with %d: %v", code, err)
			}
		}
		c := mustConnect(t, g, scheme, host, "/wait", websocket.CompressionDisabled)
		_ = c.CloseNow()
		if err := <-server.closed; err == nil {
			t.Error("the backend does not see that the client is gone")
		}
		c = mustConnect(t, g, scheme, host, "/ping", websocket.CompressionDisabled)
		if _, _, err := c.Read(withTimeout(t)); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Errorf("the ping of the backend: %v", err)
		}
		c = mustConnect(t, g, scheme, host, "/echo", websocket.CompressionDisabled)
		if err := c.Ping(c.CloseRead(withTimeout(t))); err != nil {
			t.Errorf("the ping of the client: %v", err)
		}
		c = mustConnect(t, g, scheme, host, "/die", websocket.CompressionDisabled)
		if err := c.Write(withTimeout(t), websocket.MessageText, []byte("die")); err != nil {
			t.Error(err)
		}
		if _, _, err := c.Read(withTimeout(t)); err == nil || websocket.CloseStatus(err) != -1 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the backend died: %v", err)
		}
	})
}

// TestWebSocketsAtOnce: many are open at the same time, and changes of the host and reloads end
// none of them.
func TestWebSocketsAtOnce(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const connections = 200
	server := &socketServer{}
	g := startSockets(t, server)
	ctx := withTimeout(t)
	var open [connections]*websocket.Conn
	each := func(about string, do func(i int) error) {
		t.Helper()
		var all sync.WaitGroup
		for i := range connections {
			all.Go(func() {
				if err := do(i); err != nil {
					t.Errorf("%s, connection %d: %v", about, i, err)
				}
			})
		}
		if all.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	each("at first", func(i int) (err error) {
		open[i], _, err = connect(ctx, g, []string{"ws", "wss"}[i%2], socketHosts[i/2%len(socketHosts)], "/echo", websocket.CompressionContextTakeover)
		return err
	})
	defer func() {
		for _, c := range open {
			_ = c.CloseNow()
		}
	}()
	talk := func(about string) {
		t.Helper()
		each(about, func(i int) error {
			for n := range 10 {
				if err := roundTrip(ctx, open[i], websocket.MessageText, []byte(strings.Repeat(fmt.Sprint(i, n), 1000)), 3); err != nil {
					return err
				}
			}
			return nil
		})
	}
	talk("at first")
	for _, name := range socketHosts {
		g.Apply(headgatetest.Ingress(name, name+".test", "/", name, "ssl-redirect: false", "proxy-read-timeout: 600"))
		g.Apply(headgatetest.Endpoints(name, server.start(t, false)))
	}
	talk("with other endpoints")
	g.ApplyReloading(headgatetest.Config("keep-alive-requests: 7"))
	talk("after a reload")
	for _, name := range socketHosts {
		g.Delete(headgatetest.Ingress(name, name+".test", "/", name))
	}
	g.Get("plain.test", "/").WantStatus(t, 404)
	talk("without the host")
}

// TestWebSocketOverHTTP2: a client that asks over HTTP/2 learns that it must use HTTP/1.1.
func TestWebSocketOverHTTP2(t *testing.T) {
	t.Parallel()
	g := startSockets(t, &socketServer{})
	for _, host := range socketHosts {
		g.Do(headgatetest.Request{Scheme: "https", HTTP2: true, Host: host + ".test", Path: "/echo", Header: http.Header{
			"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
		}}).WantStatus(t, http.StatusUpgradeRequired)
	}
}
