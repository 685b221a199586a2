package interop_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/coder/websocket"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A connectionKey is that of a request's TCP connection.
type connectionKey struct{}

// A socketServer is a backend for WebSockets. By the path it echoes what it gets, closes, dies,
// sends pings, or waits until the client closes.
type socketServer struct {
	// closed gets how clients closed.
	closed chan error
}

// start runs the backend with or without TLS until the test ends.
func (s *socketServer) start(t *testing.T, secure bool) string {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	if secure {
		pair := headgatetest.NewKeyPair(t, "backend", "backend.test")
		own, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
		if err != nil {
			t.Fatal(err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// ServeHTTP accepts what a browser sends from a page of the same host.
func (s *socketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{"chat"}, CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(-1)
	switch ctx := r.Context(); r.URL.Path {
	case "/close":
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		_ = c.Close(websocket.StatusCode(code), "the backend says so")
	case "/die":
		_, _, _ = c.Read(ctx)
		_ = r.Context().Value(connectionKey{}).(net.Conn).Close()
	case "/ping":
		read := c.CloseRead(ctx)
		if err := c.Ping(read); err == nil {
			_ = c.Close(websocket.StatusNormalClosure, "pong")
		}
	case "/wait":
		_, _, err := c.Read(ctx)
		s.closed <- err
	default:
		for echo(ctx, c) == nil {
		}
	}
}

// echo sends one message back, as it comes.
func echo(ctx context.Context, c *websocket.Conn) error {
	kind, in, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	out, err := c.Writer(ctx, kind)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// connect opens a WebSocket through Headgate as a browser with a page of the host does.
func connect(ctx context.Context, g *headgatetest.Instance, scheme, host, path string, mode websocket.CompressionMode) (*websocket.Conn, *http.Response, error) {
	page := map[string]string{"ws": "http", "wss": "https"}[scheme]
	client := g.NewClient(false)
	// It bounds the life of the connection too.
	client.Timeout = 0
	c, response, err := websocket.Dial(ctx, scheme+"://"+host+".test"+path, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{"Origin": {page + "://" + host + ".test"}},
		Subprotocols: []string{"odd", "chat"}, CompressionMode: mode,
	})
	if err != nil {
		return nil, response, fmt.Errorf("%s://%s%s: %w", scheme, host, path, err)
	}
	c.SetReadLimit(-1)
	return c, response, nil
}
