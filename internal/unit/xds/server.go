package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

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

// A Server serves what a Store has. It is a service of gRPC.
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
	// atOnce is how many edges may say what they hold at the same time, since that is large; others wait. holdTimeout
	// is how long one may take.
	atOnce      = 8
	holdTimeout = 30 * time.Second
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
	reader, changes, err := s.first(stream, &edge)
	if err != nil {
		return err
	}
	defer reader.Close()
	number := s.streams.Add(1)
	s.Streams.Connected(number, edge.Name)
	defer s.Streams.Gone(number)
	to := sender{stream: stream}
	answers := receive(stream)
	for {
		if err := to.cut(changes); err != nil {
			return err
		}
		rejected, err := await(stream.Context(), answers, to.nonce())
		if err != nil {
			return err
		}
		s.Streams.Acknowledged(number, changes.At, rejected)
		changes, err = reader.Next(stream.Context())
		if errors.Is(err, publish.ErrLate) {
			return status.Error(codes.Aborted, err.Error())
		}
		if err != nil {
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

// first is the first cut for an edge, and a reader for the next ones, when it is the edge's turn. The edge says its name then.
func (s *Server) first(stream Stream, edge *Edge) (*publish.Reader, publish.Cut, error) {
	select {
	case s.turns <- struct{}{}:
	case <-stream.Context().Done():
		return nil, publish.Cut{}, status.FromContextError(stream.Context().Err()).Err()
	}
	type said struct {
		held map[unit.Key]string
		name string
		err  error
	}
	done := make(chan said, 1)
	go func() {
		held, name, err := subscriptions(stream)
		done <- said{held, name, err}
	}()
	defer func() { <-s.turns }()
	select {
	case <-time.After(holdTimeout):
		// The end of the stream ends what reads it.
		return nil, publish.Cut{}, status.Errorf(codes.DeadlineExceeded, "the edge did not say within %v what it holds", holdTimeout)
	case said := <-done:
		if said.err != nil {
			return nil, publish.Cut{}, said.err
		}
		if s.Named != nil {
			edge.Name = s.Named(edge.Name, said.name)
		}
		reader := s.Store.Reader(said.held, edge.Takes)
		// The first one comes at once, and what is held is not needed after it.
		cut, err := reader.Next(stream.Context())
		if err != nil {
			reader.Close()
			return nil, publish.Cut{}, status.Error(codes.Aborted, err.Error())
		}
		return reader, cut, nil
	}
}

// subscriptions reads a request for each type that the edge knows, and returns what it holds, and the name that it says.
func subscriptions(stream Stream) (held map[unit.Key]string, name string, err error) {
	held = map[unit.Key]string{}
	waits := map[string]bool{}
	for first := true; first || len(waits) > 0; first = false {
		request, err := stream.Recv()
		if err != nil {
			return nil, "", err
		}
		if first {
			name = request.GetNode().GetId()
			if waits, err = announced(request); err != nil {
				return nil, "", err
			}
		}
		delete(waits, request.TypeUrl)
		kind, ok := kindOf(request.TypeUrl)
		if !ok {
			continue
		}
		for name, version := range request.InitialResourceVersions {
			held[kind.Key(name)] = version
		}
	}
	return held, name, nil
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
				return nil, status.Errorf(codes.Aborted, "the edge rejects %s: %s", answer.TypeUrl, answer.ErrorDetail.Message)
			case answer.ResponseNonce != nonce:
			case answer.ErrorDetail != nil:
				return errors.New(answer.ErrorDetail.Message), nil
			default:
				return nil, nil
			}
		}
	}
}

// A sender sends responses on one stream.
type sender struct {
	stream Stream
	sent   int
}

// nonce is that of the last response.
func (s *sender) nonce() string { return strconv.Itoa(s.sent) }

func (s *sender) send(response *discovery.DeltaDiscoveryResponse) error {
	s.sent++
	response.Nonce = s.nonce()
	if err := s.stream.Send(response); err != nil {
		return fmt.Errorf("send %s: %w", response.TypeUrl, err)
	}
	return nil
}

// cut sends what has changed, a kind after the other, and the end.
func (s *sender) cut(c publish.Cut) error {
	version := strconv.FormatUint(c.At, 10)
	response, size := (*discovery.DeltaDiscoveryResponse)(nil), 0
	flush := func() error {
		if response == nil {
			return nil
		}
		ready := response
		response, size = nil, 0
		return s.send(ready)
	}
	begin := func(kind unit.Kind, more int) error {
		if response != nil && (response.TypeUrl != typeOf(kind) || size+more > maxResponse) {
			if err := flush(); err != nil {
				return err
			}
		}
		if response == nil {
			response = &discovery.DeltaDiscoveryResponse{TypeUrl: typeOf(kind), SystemVersionInfo: version}
		}
		size += more
		return nil
	}
	for _, r := range c.Resources {
		if err := begin(r.Kind, len(r.Name)+len(r.Bytes)); err != nil {
			return err
		}
		response.Resources = append(response.Resources, &discovery.Resource{
			Name: r.Name, Version: r.Version, Resource: &anypb.Any{TypeUrl: typeOf(r.Kind), Value: r.Bytes},
		})
	}
	for _, key := range c.Gone {
		if err := begin(key.Kind, len(key.Name)); err != nil {
			return err
		}
		response.RemovedResources = append(response.RemovedResources, key.Name)
	}
	if err := flush(); err != nil {
		return err
	}
	return s.send(&discovery.DeltaDiscoveryResponse{
		TypeUrl: cutType, SystemVersionInfo: version,
		Resources: []*discovery.Resource{{Name: cutName, Version: version, Resource: &anypb.Any{TypeUrl: cutType}}},
	})
}
