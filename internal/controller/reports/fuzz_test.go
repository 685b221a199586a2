package reports

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A said is a stream with one message of an edge.
type said struct {
	grpc.ServerStream
	text string
}

func (s said) RecvMsg(into any) error {
	proto.Merge(into.(proto.Message), wrapperspb.Bytes([]byte(s.text)))
	return nil
}

// What is kept of any message of an edge is bounded.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{
		`{"status": {"release": "v1", "findings": [{"object": "o"}], "more_findings": -1, "requests": {"a.test": [1, 2, 3, 4, 5, 6]}}}`,
		`{"answer": {"number": 1, "holdings": [{"State": {"pid": 1}}], "problem": "p"}}`, `{"status": null, "answer": {}}`, `{}`, `[`, ``,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := NewEdges(nil)
		c := &connection{waiting: map[int64]chan answer{1: make(chan answer, 1)}}
		var message fromEdge
		if receive(said{text: text}, &message) != nil {
			return
		}
		e.take(c, message)
		if len(c.Edge.Status.Problem) > maxText || len(c.Edge.Status.Findings) > maxFindings || c.Edge.Status.MoreFindings < 0 || c.Edge.Status.MoreFindings > maxMore+len(text) || len(e.Requests()) > maxHosts {
			t.Errorf("%+v and %d hosts are kept", c.Edge, len(e.Requests()))
		}
		for host := range e.Requests() {
			if len(host) > maxHost {
				t.Errorf("a name has %d bytes", len(host))
			}
		}
	})
}
