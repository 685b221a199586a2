package interop_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestLargeMetadata: metadata beyond the usual buffer of a header needs grpc-buffer-size-kb.
func TestLargeMetadata(t *testing.T) {
	t.Parallel()
	bulk := strings.Repeat("x", 6000)
	b := &backend{unary: func(ctx context.Context) error {
		in, _ := metadata.FromIncomingContext(ctx)
		_ = grpc.SetHeader(ctx, metadata.Pairs("x-one", strings.Join(in["x-one"], ""), "x-two", bulk))
		return grpc.SetTrailer(ctx, metadata.Pairs("x-end", bulk))
	}}
	ask := func(t *testing.T, client grpc_testing.TestServiceClient) error {
		var header, trailer metadata.MD
		ctx := metadata.AppendToOutgoingContext(withTimeout(t), "x-one", bulk)
		_, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
		if err == nil && (strings.Join(header["x-one"], "") != bulk || strings.Join(header["x-two"], "") != bulk || strings.Join(trailer["x-end"], "") != bulk) {
			t.Errorf("the metadata are of %d, %d and %d bytes", len(strings.Join(header["x-one"], "")), len(strings.Join(header["x-two"], "")), len(strings.Join(trailer["x-end"], "")))
		}
		return err
	}
	g := startBoth(t, b, nil, func(t *testing.T, client grpc_testing.TestServiceClient) {
		if err := ask(t, client); status.Code(err) != codes.Unavailable {
			t.Errorf("metadata beyond the buffer: %v", err)
		}
	})
	g.ApplyReloading(headgatetest.Config("grpc-buffer-size-kb: 64"))
	for _, host := range []string{"grpc", "grpcs"} {
		if err := ask(t, newClient(t, g, host)); err != nil {
			t.Errorf("%s with the key: %v", host, err)
		}
	}
}

// TestBackendDies: the client of a stream gets an error, and the next call works.
func TestBackendDies(t *testing.T) {
	t.Parallel()
	service := &backend{unary: func(context.Context) error { return nil }, output: func(s grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error {
		if err := s.Send(&grpc_testing.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	}}
	kill := &killable{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kill.Listener = listener
	server := grpc.NewServer(grpc.Creds(insecure.NewCredentials()))
	grpc_testing.RegisterTestServiceServer(server, service)
	go func() { _ = server.Serve(kill) }()
	t.Cleanup(server.Stop)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("grpc", headgatetest.Service("grpc"), listener.Addr().String(), "backend-protocol: GRPC")})
	client := newClient(t, g, "grpc")
	s, err := client.StreamingOutputCall(withTimeout(t), &grpc_testing.StreamingOutputCallRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	kill.all()
	_, err = s.Recv()
	t.Logf("the stream ended with %v", err)
	if code := status.Code(err); err == io.EOF || code != codes.Internal && code != codes.Unavailable && code != codes.Unknown {
		t.Errorf("the stream ended with %v", err)
	}
	if _, err := client.UnaryCall(withTimeout(t), &grpc_testing.SimpleRequest{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// A killable listener can end its connections.
type killable struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func (k *killable) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		k.mu.Lock()
		k.open = append(k.open, c)
		k.mu.Unlock()
	}
	return c, err
}

// all ends all connections at once.
func (k *killable) all() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.open {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}
