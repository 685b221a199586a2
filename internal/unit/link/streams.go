package link

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// How many streams of a kind an edge may have at a time, over all of its connections: each can take up tens of
// MiB. An edge that has lost its connection has more than one for a while. Those that may share their certificate
// with others have more, from each address.
const (
	maxOfEdge    = 4
	maxOfAddress = 16
)

// An opener is who opens streams of a kind, and from where if several edges may be the same.
type opener struct {
	kind string
	who  Identity
	from place
}

// streams are those that are open.
type streams struct {
	// shared: several edges may have one certificate.
	shared bool
	open   shares[opener]
}

// bound refuses streams of who has too many.
func (s *streams) bound(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	who, err := Peer(stream.Context())
	if err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	of, most := opener{kind: info.FullMethod, who: who}, int64(maxOfEdge)
	if s.shared {
		of.from, most = placeOfPeer(stream), maxOfAddress
	}
	if !s.open.try(of, most) {
		return status.Errorf(codes.ResourceExhausted, "the edge has %d streams of this kind already", most)
	}
	defer s.open.release(of)
	return handle(service, stream)
}

// placeOfPeer is where a stream comes from.
func placeOfPeer(stream grpc.ServerStream) place {
	if from, ok := peer.FromContext(stream.Context()); ok {
		return placeOf(from.Addr)
	}
	return place{}
}
