package xds

import (
	"fmt"
	"slices"
	"strconv"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A sender sends a cut on one stream.
type sender struct {
	stream  Stream
	version string
	sent    int
}

// send sends what has changed, a kind after the other, and the end. It returns the nonce of that.
func send(stream Stream, c publish.Cut) (nonce string, err error) {
	s := &sender{stream: stream, version: strconv.FormatUint(c.At, 10)}
	if c.Whole != nil {
		err = s.whole(c.Whole)
	} else {
		err = s.resources(c.Resources, maxResponse, s.send)
	}
	if err != nil {
		return "", err
	}
	if err := s.gone(c.Gone); err != nil {
		return "", err
	}
	end := s.response(cutType)
	end.Resources = []*discovery.Resource{{Name: cutName, Version: s.version, Resource: &anypb.Any{TypeUrl: cutType}}}
	return end.Nonce, s.send(end)
}

func (s *sender) send(response *discovery.DeltaDiscoveryResponse) error {
	if err := s.stream.Send(response); err != nil {
		return fmt.Errorf("send %s: %w", response.TypeUrl, err)
	}
	return nil
}

// response begins the next one. Its nonce is the same for all who get the same.
func (s *sender) response(of string) *discovery.DeltaDiscoveryResponse {
	s.sent++
	return &discovery.DeltaDiscoveryResponse{TypeUrl: of, SystemVersionInfo: s.version, Nonce: s.version + "." + strconv.Itoa(s.sent)}
}

// resources makes responses of at most so many bytes.
func (s *sender) resources(list []wire.Resource, most int, send func(*discovery.DeltaDiscoveryResponse) error) error {
	for len(list) > 0 {
		kind, size := list[0].Kind, 0
		of := typeOf(kind)
		response := s.response(of)
		for len(list) > 0 && list[0].Kind == kind {
			r := list[0]
			if size += len(r.Name) + len(r.Version) + len(r.Bytes) + len(of); size > most && len(response.Resources) > 0 {
				break
			}
			response.Resources = append(response.Resources, &discovery.Resource{Name: r.Name, Version: r.Version, Resource: &anypb.Any{TypeUrl: of, Value: r.Bytes}})
			list = list[1:]
		}
		if err := send(response); err != nil {
			return err
		}
	}
	return nil
}

// gone makes responses of what is gone.
func (s *sender) gone(list []unit.Key) error {
	for len(list) > 0 {
		kind, size := list[0].Kind, 0
		end := slices.IndexFunc(list, func(key unit.Key) bool {
			size += len(key.Name)
			return key.Kind != kind || size > maxResponse && key != list[0]
		})
		if end < 0 {
			end = len(list)
		}
		response := s.response(typeOf(kind))
		for _, key := range list[:end] {
			response.RemovedResources = append(response.RemovedResources, key.Name)
		}
		if err := s.send(response); err != nil {
			return err
		}
		list = list[end:]
	}
	return nil
}

// whole sends all that there is, which is encoded once for many edges.
func (s *sender) whole(w *publish.Whole) error {
	all := w.Made(func(list []wire.Resource) any { return encodeAll(s.version, list) }).(encodedAll)
	if all.err != nil {
		return fmt.Errorf("encode all units: %w", all.err)
	}
	for _, message := range all.messages {
		if err := s.stream.SendMsg(message); err != nil {
			return fmt.Errorf("send all units: %w", err)
		}
	}
	s.sent = len(all.messages)
	return nil
}

// encoded is a response as it is sent.
type encoded []byte

// encodedAll are responses with everything, or why there are none.
type encodedAll struct {
	messages []encoded
	err      error
}

func encodeAll(version string, list []wire.Resource) (all encodedAll) {
	s := &sender{version: version}
	all.err = s.resources(list, maxShared, func(response *discovery.DeltaDiscoveryResponse) error {
		data, err := encoding.GetCodecV2(proto.Name).Marshal(response)
		if err != nil {
			return err
		}
		all.messages = append(all.messages, data.Materialize())
		data.Free()
		return nil
	})
	return all
}

// Codec encodes what a Server sends. A server of gRPC must have it for all that it serves.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// codec passes on what is encoded already. It is compressed, if it is, for each stream.
type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(message any) (mem.BufferSlice, error) {
	if text, is := message.(encoded); is {
		return mem.BufferSlice{mem.SliceBuffer(text)}, nil
	}
	return c.CodecV2.Marshal(message)
}
