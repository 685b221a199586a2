package xds

import (
	"context"
	"errors"
	"fmt"
	"io"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// Follow gets what a control has, until ctx or the connection ends: first what differs from the
// versions that are held, and then each change. take is called with a cut at a time; the first one
// may be empty. If it returns an error, the control gets to know of it, and the next cut comes
// nevertheless.
func Follow(ctx context.Context, connection grpc.ClientConnInterface, edge string, held map[unit.Key]string, take func(context.Context, publish.Cut) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(ctx, grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage))
	if err != nil {
		return fmt.Errorf("open the stream of units: %w", err)
	}
	if err := subscribe(stream, edge, held); err != nil {
		return fmt.Errorf("subscribe to units: %w", reason(stream, err))
	}
	var cut publish.Cut
	for {
		response, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("receive units: %w", err)
		}
		answer := &discovery.DeltaDiscoveryRequest{TypeUrl: response.TypeUrl, ResponseNonce: response.Nonce}
		switch kind, ok := kindOf(response.TypeUrl); {
		case ok:
			collect(&cut, kind, response)
		case response.TypeUrl == cutType:
			if err := take(ctx, cut); err != nil {
				answer.ErrorDetail = &rpcstatus.Status{Code: int32(codes.FailedPrecondition), Message: err.Error()}
			}
			cut = publish.Cut{}
		default:
			answer.ErrorDetail = &rpcstatus.Status{Code: int32(codes.Unimplemented), Message: "unknown type"}
		}
		if err := stream.Send(answer); err != nil {
			return fmt.Errorf("acknowledge units: %w", reason(stream, err))
		}
	}
}

// following is the stream of one who follows.
type following = discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient

// reason is why the control has ended a stream to which nothing can be sent: gRPC gives that to who receives.
func reason(stream following, err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

func subscribe(stream following, edge string, held map[unit.Key]string) error {
	var list []any
	for _, of := range types() {
		list = append(list, of)
	}
	metadata, err := structpb.NewStruct(map[string]any{schemaField: Schema, typesField: list})
	if err != nil {
		return err
	}
	versions := map[string]map[string]string{}
	for key, version := range held {
		of := typeOf(key.Kind)
		if versions[of] == nil {
			versions[of] = map[string]string{}
		}
		versions[of][key.Name] = version
	}
	for i, of := range types() {
		request := &discovery.DeltaDiscoveryRequest{TypeUrl: of, ResourceNamesSubscribe: []string{wildcard}, InitialResourceVersions: versions[of]}
		if i == 0 {
			request.Node = &core.Node{Id: edge, Metadata: metadata}
		}
		if err := stream.Send(request); err != nil {
			return err
		}
	}
	return nil
}

func collect(cut *publish.Cut, kind unit.Kind, response *discovery.DeltaDiscoveryResponse) {
	for _, r := range response.Resources {
		cut.Resources = append(cut.Resources, wire.Resource{Key: kind.Key(r.Name), Version: r.Version, Bytes: r.GetResource().GetValue()})
	}
	for _, name := range response.RemovedResources {
		cut.Gone = append(cut.Gone, kind.Key(name))
	}
}
