package interop_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A backend is a gRPC backend whose methods a test writes.
type backend struct {
	grpc_testing.UnimplementedTestServiceServer
	unary  func(context.Context) error
	output func(grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error
	duplex func(grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error
}

func (b *backend) UnaryCall(ctx context.Context, _ *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	return &grpc_testing.SimpleResponse{}, b.unary(ctx)
}

func (b *backend) StreamingOutputCall(_ *grpc_testing.StreamingOutputCallRequest, s grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error {
	return b.output(s)
}

func (b *backend) FullDuplexCall(s grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error {
	return b.duplex(s)
}

func payload(size int) *grpc_testing.Payload {
	return &grpc_testing.Payload{Body: make([]byte, size)}
}

// startBoth runs Headgate before a backend with and without TLS, grpcs.test and grpc.test, and
// does something with a client of each.
func startBoth(t *testing.T, b *backend, annotations []string, do func(t *testing.T, client grpc_testing.TestServiceClient)) *headgatetest.Instance {
	t.Helper()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: "" +
		served("grpc", headgatetest.Service("grpc"), startGRPC(t, false, b), append(annotations, "backend-protocol: GRPC")...) +
		served("grpcs", headgatetest.Service("grpcs"), startGRPC(t, true, b), append(annotations, "backend-protocol: GRPCS")...)})
	for _, host := range []string{"grpc", "grpcs"} {
		t.Run(host, func(t *testing.T) { do(t, newClient(t, g, host)) })
	}
	return g
}

func newClient(t *testing.T, g *headgatetest.Instance, host string) grpc_testing.TestServiceClient {
	t.Helper()
	connection, err := dial(headgatetest.Address(g.HTTPS), host+".test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return grpc_testing.NewTestServiceClient(connection)
}

// timeout is for what takes long on a slow machine.
const timeout = 5 * headgatetest.Timeout

func withTimeout(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(stop)
	return ctx
}

// received reads a stream to its end, and returns the bytes of the payloads.
func received[M interface{ GetPayload() *grpc_testing.Payload }](s interface{ Recv() (M, error) }) (int, error) {
	total := 0
	for {
		m, err := s.Recv()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		total += len(m.GetPayload().GetBody())
	}
}

// TestBothWays: both sides send at the same time, much more than any buffer holds.
func TestBothWays(t *testing.T) {
	t.Parallel()
	const messages, size = 128, 64 << 10
	b := &backend{duplex: func(s grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error {
		sent := make(chan error, 1)
		go func() {
			for range messages {
				if err := s.Send(&grpc_testing.StreamingOutputCallResponse{Payload: payload(size)}); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		total, err := received(s)
		if err != nil {
			return err
		}
		s.SetTrailer(metadata.Pairs("x-total", fmt.Sprint(total)))
		return <-sent
	}}
	startBoth(t, b, []string{"proxy-body-size: 0"}, func(t *testing.T, client grpc_testing.TestServiceClient) {
		s, err := client.FullDuplexCall(withTimeout(t))
		if err != nil {
			t.Fatal(err)
		}
		sender := sync.WaitGroup{}
		defer sender.Wait()
		sender.Go(func() {
			for range messages {
				if err := s.Send(&grpc_testing.StreamingOutputCallRequest{Payload: payload(size)}); err != nil {
					t.Error(err)
					return
				}
			}
			_ = s.CloseSend()
		})
		total, err := received(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Trailer().Get("x-total"); total != messages*size || len(got) != 1 || got[0] != fmt.Sprint(total) {
			t.Errorf("%d bytes came, and the backend got %v, want %d", total, got, messages*size)
		}
	})
}

// TestSlowReader: a client that does not read stops the backend, and nothing is lost.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const messages, size = 512, 64 << 10
	var sent, at atomic.Int64
	b := &backend{output: func(s grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error {
		for i := range messages {
			sent.Store(int64(i))
			at.Store(time.Now().UnixNano())
			if err := s.Send(&grpc_testing.StreamingOutputCallResponse{Payload: payload(size)}); err != nil {
				return err
			}
		}
		sent.Store(messages)
		return nil
	}}
	startBoth(t, b, nil, func(t *testing.T, client grpc_testing.TestServiceClient) {
		sent.Store(0)
		at.Store(time.Now().UnixNano())
		s, err := client.StreamingOutputCall(withTimeout(t), &grpc_testing.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		// If nothing stopped the backend, it would be at the end at some time, however slow.
		headgatetest.Eventually(t, "the backend waits, or is ready", func() bool {
			return sent.Load() == messages || sent.Load() > 0 && time.Since(time.Unix(0, at.Load())) > time.Second
		})
		if n := sent.Load(); n == messages {
			t.Errorf("all %d messages were sent to a client that reads none", n)
		}
		got, err := received(s)
		if err != nil {
			t.Fatal(err)
		}
		if got != messages*size {
			t.Errorf("%d bytes, want %d", got, messages*size)
		}
	})
}

// TestCancellation: the backend learns at once that the client does not want an answer any
// more, and knows the deadline.
func TestCancellation(t *testing.T) {
	t.Parallel()
	began, ended := make(chan time.Time, 20), make(chan error, 20)
	wait := func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		began <- deadline
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	b := &backend{unary: wait, output: func(s grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error {
		if err := s.Send(&grpc_testing.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		return wait(s.Context())
	}}
	startBoth(t, b, nil, func(t *testing.T, client grpc_testing.TestServiceClient) {
		ctx, cancel := context.WithCancel(withTimeout(t))
		failed := make(chan error, 1)
		go func() {
			_, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{})
			failed <- err
		}()
		<-began
		cancel()
		if err := <-failed; status.Code(err) != codes.Canceled {
			t.Errorf("the call ended with %v", err)
		}
		<-ended

		ctx, cancel = context.WithCancel(withTimeout(t))
		s, err := client.StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		<-began
		cancel()
		<-ended

		ctx, cancel = context.WithCancel(withTimeout(t))
		go func() { _, _ = client.UnaryCall(ctx, &grpc_testing.SimpleRequest{}) }()
		if deadline := <-began; deadline.IsZero() {
			t.Error("the backend knows no deadline")
		}
		cancel()
		<-ended
		expire(t, client, began, ended)
	})
}

// expire asks with longer and longer deadlines, until a call reaches the backend before its end.
func expire(t *testing.T, client grpc_testing.TestServiceClient, began chan time.Time, ended chan error) {
	for limit := 50 * time.Millisecond; limit < headgatetest.Timeout; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{})
		cancel()
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the call with a deadline ended with %v", err)
		}
		select {
		case <-began:
			<-ended
			return
		default:
		}
	}
	t.Error("no call reached the backend")
}

// TestManyStreams: a thousand calls over one connection, a hundred of them at the same time.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	const calls, together = 1000, 100
	var mu sync.Mutex
	now, all := 0, make(chan struct{})
	b := &backend{duplex: func(s grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error {
		mu.Lock()
		if now++; now == together {
			close(all)
		}
		open := all
		mu.Unlock()
		select {
		case <-open:
		case <-s.Context().Done():
			return s.Context().Err()
		}
		for {
			m, err := s.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.Send(&grpc_testing.StreamingOutputCallResponse{Payload: m.Payload}); err != nil {
				return err
			}
		}
	}}
	startBoth(t, b, nil, func(t *testing.T, client grpc_testing.TestServiceClient) {
		mu.Lock()
		now, all = 0, make(chan struct{})
		mu.Unlock()
		ctx := withTimeout(t)
		var calling sync.WaitGroup
		for i := range calls {
			calling.Go(func() {
				if err := exchange(ctx, client, byte(i)); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			})
		}
		calling.Wait()
	})
}

// exchange sends messages with a byte and gets them back.
func exchange(ctx context.Context, client grpc_testing.TestServiceClient, mark byte) error {
	s, err := client.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	for range 3 {
		if err := s.Send(&grpc_testing.StreamingOutputCallRequest{Payload: &grpc_testing.Payload{Body: []byte{mark, mark}}}); err != nil {
			return err
		}
		m, err := s.Recv()
		if err != nil {
			return err
		}
		if string(m.Payload.Body) != string([]byte{mark, mark}) {
			return fmt.Errorf("got %v, want %d twice", m.Payload.Body, mark)
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	if _, err := s.Recv(); err != io.EOF {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}
