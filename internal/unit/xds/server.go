package xds

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
)

// An Edge is who asks for units.
type Edge struct {
	// Name is unique among edges at one time.
	Name string
	// Takes says of which namespaces it gets units; nil for all.
	Takes func(namespace string) bool
}

// A Server serves what a Store has. It is a service of a server of gRPC that has Codec.
type Server struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	// Store has the resources.
	Store *publish.Store
	// Identify says who has opened a stream, by its credentials.
	Identify func(context.Context) (Edge, error)
	// Named is the name to show of an edge, by that of its credentials and the one that it says. It is nil if the first
	// is enough.
	Named func(name, said string) string
	// Ready reports whether the Store has everything: an edge would drop what it lacks.
	Ready func() bool
	// Streams gets reports about each stream.
	Streams Streams

	streams atomic.Int64
	// turns has room for those that say what they hold.
	turns chan struct{}
}

const (
	// atOnce is how many edges may say what they hold at the same time, since that is large; others wait once they have
	// begun. firstTimeout is how long one may take to begin, and holdTimeout how long for the rest.
	atOnce       = 8
	firstTimeout = 10 * time.Second
	holdTimeout  = 30 * time.Second
	// maxReason is the length of a reason that an edge gives, in bytes.
	maxReason = 1 << 10
)

// Register adds the service to a server.
func (s *Server) Register(to grpc.ServiceRegistrar) {
	s.turns = make(chan struct{}, atOnce)
	discovery.RegisterAggregatedDiscoveryServiceServer(to, s)
}

// Streams get reports about streams, by their numbers. The methods may be called by several goroutines.
type Streams interface {
	// Connected is called when an edge has opened a stream, and Gone at the end of that.
	Connected(stream int64, edge string)
	Gone(stream int64)
	// Acknowledged is called when the edge has all changes up to a version of the Store, with why it rejected
	// some, nil if it did not.
	Acknowledged(stream int64, at uint64, rejected error)
}

// Stream is the aggregated stream of one edge.
type Stream = discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer

// DeltaAggregatedResources serves an edge until its stream ends.
func (s *Server) DeltaAggregatedResources(stream Stream) error {
	edge, err := s.Identify(stream.Context())
	if err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	if !s.Ready() {
		return status.Error(codes.Unavailable, "the control has not read everything yet")
	}
	reader := s.Store.Reader(edge.Takes)
	defer reader.Close()
	said, err := s.subscribe(stream, reader)
	if err != nil {
		return err
	}
	if s.Named != nil {
		edge.Name = s.Named(edge.Name, said)
	}
	number := s.streams.Add(1)
	s.Streams.Connected(number, edge.Name)
	defer s.Streams.Gone(number)
	answers := receive(stream)
	for first := true; ; first = false {
		changes, err := reader.Next(stream.Context())
		if errors.Is(err, publish.ErrLate) {
			return status.Error(codes.Aborted, err.Error())
		}
		if err != nil {
			return status.FromContextError(stream.Context().Err()).Err()
		}
		if !first && len(changes.Resources)+len(changes.Gone) == 0 {
			// What has changed is for others.
			s.Streams.Acknowledged(number, changes.At, nil)
			continue
		}
		nonce, err := send(stream, changes)
		if err != nil {
			return err
		}
		rejected, err := await(stream.Context(), answers, nonce)
		if err != nil {
			return err
		}
		s.Streams.Acknowledged(number, changes.At, rejected)
	}
}

// subscribe has an edge say what it holds, and returns the name that it says.
func (s *Server) subscribe(stream Stream, reader *publish.Reader) (name string, _ error) {
	first, err := within(firstTimeout, stream.Recv)
	if err != nil {
		return "", err
	}
	waits, err := announced(first)
	if err != nil {
		return "", err
	}
	// Who says nothing has no turn: others would wait for it.
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-stream.Context().Done():
		return "", status.FromContextError(stream.Context().Err()).Err()
	}
	return within(holdTimeout, func() (string, error) {
		return first.GetNode().GetId(), subscriptions(stream, reader, first, waits)
	})
}

// within is what a function returns that reads a stream, or an error if that takes too long. Then the end of the
// stream ends the function.
func within[T any](most time.Duration, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-late.C:
		return *new(T), status.Errorf(codes.DeadlineExceeded, "the edge did not say within %v what it holds", most)
	case r := <-done:
		return r.value, r.err
	}
}

// subscriptions reads a request for each type that the edge knows, from the first one on, and notes what it holds.
func subscriptions(stream Stream, reader *publish.Reader, request *discovery.DeltaDiscoveryRequest, waits map[string]bool) (err error) {
	for {
		if waits[request.TypeUrl] {
			delete(waits, request.TypeUrl)
			if err := hold(reader, request); err != nil {
				return status.Error(codes.ResourceExhausted, err.Error())
			}
		}
		if len(waits) == 0 {
			return nil
		}
		if request, err = stream.Recv(); err != nil {
			return err
		}
	}
}

func hold(reader *publish.Reader, request *discovery.DeltaDiscoveryRequest) error {
	kind, ok := kindOf(request.TypeUrl)
	if !ok {
		return nil
	}
	return reader.Hold(func(yield func(unit.Key, string) bool) {
		for name, version := range request.InitialResourceVersions {
			if !yield(kind.Key(name), version) {
				return
			}
		}
	})
}

// announced are the types that an edge says it will subscribe to.
func announced(request *discovery.DeltaDiscoveryRequest) (map[string]bool, error) {
	fields := request.GetNode().GetMetadata().GetFields()
	if schema := int(fields[schemaField].GetNumberValue()); schema < Schema-1 || schema > Schema+1 || schema < 1 {
		return nil, status.Errorf(codes.FailedPrecondition, "the edge has schema %d, and this control %d: they must not differ by more than one", schema, Schema)
	}
	list := map[string]bool{}
	for _, value := range fields[typesField].GetListValue().GetValues() {
		list[value.GetStringValue()] = true
	}
	for _, kind := range kinds() {
		if !list[typeOf(kind)] {
			return nil, status.Errorf(codes.FailedPrecondition, "the edge knows no units of the kind %s", kind)
		}
	}
	if !list[cutType] {
		return nil, status.Errorf(codes.FailedPrecondition, "the edge does not subscribe to %s", cutType)
	}
	return list, nil
}

// receive passes on what an edge answers, apart from acknowledgements of responses within a cut: while a cut is
// sent, nothing waits for these. The channel is closed when the stream ends.
func receive(stream Stream) <-chan *discovery.DeltaDiscoveryRequest {
	answers := make(chan *discovery.DeltaDiscoveryRequest)
	go func() {
		defer close(answers)
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			if request.TypeUrl != cutType && request.ErrorDetail == nil {
				continue
			}
			select {
			case answers <- request:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	return answers
}

// await waits until the response with a nonce is acknowledged, or rejected for a reason.
func await(ctx context.Context, answers <-chan *discovery.DeltaDiscoveryRequest, nonce string) (rejected, err error) {
	for {
		select {
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case answer, ok := <-answers:
			switch {
			case !ok:
				return nil, io.EOF
			case answer.ErrorDetail != nil && answer.ResponseNonce != nonce:
				// Nothing that refers to it would be of use.
				return nil, status.Errorf(codes.Aborted, "the edge rejects %s: %s", cut(answer.TypeUrl), cut(answer.ErrorDetail.Message))
			case answer.ResponseNonce != nonce:
			case answer.ErrorDetail != nil:
				return errors.New(cut(answer.ErrorDetail.Message)), nil
			default:
				return nil, nil
			}
		}
	}
}

// cut is a text of an edge, which may be of any length.
func cut(text string) string {
	if len(text) > maxReason {
		return strings.ToValidUTF8(text[:maxReason], "")
	}
	return text
}
