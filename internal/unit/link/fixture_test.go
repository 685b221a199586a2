package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

// watchMethod is the method of a service that is for edges. It says who has called it, and then waits.
const watchMethod = "/test.Units/Watch"

// A control serves edges in this process.
type control struct {
	testing.TB
	*Server
	authority *Authority
	trust     atomic.Pointer[Trust]
	address   string
	log       *output
	// stuck has streams wait for messages, and not for their end.
	stuck bool
}

// An output keeps a log.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// reviewed takes the tokens that are names of edges, of the group shop.
func reviewed(_ context.Context, token string) (Identity, error) {
	if token != "edge-1" && token != "edge-2" {
		return Identity{}, Refusal{"the token is of no edge"}
	}
	return Identity{"shop", token, ""}, nil
}

func trustOf(t testing.TB, a *Authority, more ...*x509.Certificate) *Trust {
	t.Helper()
	own, err := a.Server(time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	all := append([]*x509.Certificate{a.Certificate}, more...)
	return &Trust{Certificate: own, Edges: Pool(all...), Signer: a, Bundle: EncodeCertificates(all...)}
}

// start starts a control with its own authority.
func start(t testing.TB, change func(*ServerSettings)) *control {
	t.Helper()
	c := &control{TB: t, authority: newAuthority(t), log: &output{}}
	c.trust.Store(trustOf(t, c.authority))
	s := ServerSettings{
		Source: func() (*Trust, error) { return c.trust.Load(), nil }, Review: reviewed, MaxMessage: 1 << 20, Log: slog.New(slog.NewTextHandler(c.log, nil)),
	}
	if change != nil {
		change(&s)
	}
	c.Server = NewServer(s)
	c.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Units", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true, ClientStreams: true, Handler: c.watch}},
	}, c)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = listener.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(listener) }()
	t.Cleanup(func() {
		c.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *control) watch(_ any, stream grpc.ServerStream) error {
	i, err := Peer(stream.Context())
	if err != nil {
		return err
	}
	message, err := structpb.NewStruct(map[string]any{"group": i.Group, "name": i.Name})
	if err != nil {
		return err
	}
	if err := stream.SendMsg(message); err != nil {
		return err
	}
	if c.stuck {
		return stream.RecvMsg(message)
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// edge is a Client of the control with a token, which runs until the test ends.
func (c *control) edge(token string) *Client {
	c.Helper()
	dir := c.TempDir()
	e := c.client(ClientSettings{TokenFile: c.write(dir, "token", []byte(token+"\n")), CAFile: c.write(dir, "ca", EncodeCertificates(c.authority.Certificate))})
	c.run(e)
	return e
}

func (c *control) client(s ClientSettings) *Client {
	c.Helper()
	s.Address, s.Log = c.address, slog.New(slog.NewTextHandler(c.log, nil))
	e, err := NewClient(s)
	if err != nil {
		c.Fatal(err)
	}
	e.retry, e.look = 5*time.Millisecond, 5*time.Millisecond
	c.Cleanup(func() { e.Close() })
	return e
}

func (c *control) run(e *Client) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { e.Run(ctx) })
	c.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (c *control) write(dir, name string, content []byte) string {
	c.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		c.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		c.Fatal(err)
	}
	return name
}

// units opens a stream, and returns who the control says it is from. Its end is an error.
func units(ctx context.Context, over grpc.ClientConnInterface) (Identity, func() error, error) {
	stream, err := over.NewStream(metadata.AppendToOutgoingContext(ctx), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, watchMethod)
	if err != nil {
		return Identity{}, nil, err
	}
	message := &structpb.Struct{}
	if err := stream.RecvMsg(message); err != nil {
		return Identity{}, nil, err
	}
	i := Identity{Group: message.Fields["group"].GetStringValue(), Name: message.Fields["name"].GetStringValue()}
	return i, func() error {
		if err := stream.RecvMsg(message); err != io.EOF {
			return err
		}
		return nil
	}, nil
}

// until waits for a condition.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not happen that %s", what)
		}
	}
}

// signed is a certificate of an authority for an edge, with its key.
func signed(t testing.TB, a *Authority, i Identity, validity time.Duration) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	leaf, err := a.Edge(parsed(t, requestOf(t, &x509.CertificateRequest{}, key)), i, time.Now(), validity)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// shows is a connection with a certificate, or with none.
func (c *control) shows(own *tls.Certificate) *grpc.ClientConn {
	c.Helper()
	return c.showsFrom("127.0.0.1", own)
}

// dialer opens connections from an address of loopback.
func dialer(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}

// showsFrom is one from an address of loopback.
func (c *control) showsFrom(address string, own *tls.Certificate) *grpc.ClientConn {
	c.Helper()
	e := c.client(ClientSettings{CAFile: c.write(c.TempDir(), "ca", EncodeCertificates(c.authority.Certificate))})
	var show func() (*tls.Certificate, error)
	if own != nil {
		show = func() (*tls.Certificate, error) { return own, nil }
	}
	connection, err := e.open(show, grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
		return dialer(address).DialContext(ctx, "tcp", to)
	}))
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { connection.Close() })
	return connection
}
