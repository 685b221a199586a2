package link

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// unaryGuard refuses requests without an identity.
func unaryGuard(source Source) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if _, _, err := verified(ctx, source); err != nil {
			return nil, status.Error(codes.Unauthenticated, err.Error())
		}
		return handle(ctx, request)
	}
}

// streamGuard refuses streams without an identity. Their contexts end with the certificate, or when it is
// not trusted any more: at the latest, that is found after an interval.
func streamGuard(source Source, interval time.Duration) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		_, until, err := verified(stream.Context(), source)
		if err != nil {
			return status.Error(codes.Unauthenticated, err.Error())
		}
		ctx, end := context.WithCancelCause(stream.Context())
		var watching sync.WaitGroup
		watching.Go(func() { watch(ctx, end, source, until, interval) })
		err = handle(service, &guarded{stream, ctx})
		end(nil)
		watching.Wait()
		if ended, ok := errors.AsType[endedError](context.Cause(ctx)); ok {
			return status.Error(codes.Unauthenticated, ended.Error())
		}
		return err
	}
}

// watch ends the context of a stream with its certificate.
func watch(ctx context.Context, end context.CancelCauseFunc, source Source, until time.Time, interval time.Duration) {
	for {
		select {
		case <-time.After(min(interval, max(0, time.Until(until)))):
		case <-ctx.Done():
			return
		}
		if _, _, err := verified(ctx, source); err != nil {
			end(endedError{err})
			return
		}
	}
}

// endedError is why a stream has ended.
type endedError struct{ error }

// A guarded stream ends with the certificate of its edge.
type guarded struct {
	grpc.ServerStream
	ctx context.Context
}

// Context is that of the stream.
func (g *guarded) Context() context.Context { return g.ctx }
