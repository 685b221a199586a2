// Package reports carries what edges say of themselves to a control, and what the control asks them, over one stream
// of gRPC that each edge opens. Everything on it is bounded.
//
// It must not know who may open a stream, nor who looks at reports.
package reports

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/unit"
)

const (
	serviceName = "headgate.edge.v1.Reports"
	method      = "Report"
	// maxMessage bounds a message, in bytes; that of the question too.
	maxMessage = 1 << 20
	// maxFindings, maxHosts, maxHost and maxText bound a Status: its findings, the hosts whose requests were counted,
	// the name of one, and another text, in bytes.
	maxFindings = 100
	maxHosts    = 1000
	maxHost     = 253
	maxText     = 500
	maxMore     = 1_000_000
	// MaxUnits bounds a question.
	MaxUnits = 1000
)

// Counts are numbers of requests by the class of the status: others, 1xx, 2xx and so on.
type Counts = [6]uint64

// A Status is what an edge says of itself.
type Status struct {
	// Name is that of its Pod, or of its machine. Anything may be in it.
	Name    string    `json:"name,omitempty"`
	Release string    `json:"release"`
	NGINX   string    `json:"nginx"`
	Started time.Time `json:"started"`
	// Serving: NGINX serves; Problem is why not. Synced: NGINX has everything that was received.
	Serving bool   `json:"serving"`
	Synced  bool   `json:"synced"`
	Problem string `json:"problem,omitempty"`
	// Findings are about this edge alone, the worst first, and MoreFindings is the number of those left out.
	Findings     []finding.Finding `json:"findings,omitempty"`
	MoreFindings int               `json:"more_findings,omitempty"`
	// Requests are those since the last Status, by host.
	Requests map[string]Counts `json:"requests,omitempty"`
}

// bound cuts what is too much.
func (s *Status) bound() {
	s.Name, s.Release, s.NGINX, s.Problem = cut(s.Name), cut(s.Release), cut(s.NGINX), cut(s.Problem)
	s.MoreFindings = min(max(s.MoreFindings, 0), maxMore)
	if more := len(s.Findings) - maxFindings; more > 0 {
		s.Findings, s.MoreFindings = s.Findings[:maxFindings], s.MoreFindings+more
	}
	for i := range s.Findings {
		f := &s.Findings[i]
		f.Object, f.Field, f.Code, f.Message, f.Effect = cut(f.Object), cut(f.Field), finding.Code(cut(string(f.Code))), cut(f.Message), cut(f.Effect)
	}
	maps.DeleteFunc(s.Requests, func(host string, _ Counts) bool { return len(host) > maxHost })
	for host := range s.Requests {
		if len(s.Requests) <= maxHosts {
			break
		}
		delete(s.Requests, host)
	}
}

func cut(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

// A fromEdge is a message of an edge: a status, or the answer to a question.
type fromEdge struct {
	Status *Status `json:"status,omitempty"`
	Answer *answer `json:"answer,omitempty"`
}

// A question asks which versions of units each worker of NGINX has, and for its state.
type question struct {
	Number int64      `json:"number"`
	Units  []unit.Key `json:"units"`
}

type answer struct {
	Number   int64               `json:"number"`
	Holdings []dataplane.Holding `json:"holdings"`
	Problem  string              `json:"problem,omitempty"`
}

// description is the service. There is no file of protocol buffers for it: messages are JSON.
func description() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: serviceName, HandlerType: (*server)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: method, ServerStreams: true, ClientStreams: true,
			Handler: func(srv any, stream grpc.ServerStream) error { return srv.(server).report(stream) },
		}},
	}
}

type server interface{ report(grpc.ServerStream) error }

// A messenger sends and receives.
type messenger interface {
	SendMsg(any) error
	RecvMsg(any) error
}

// errTooLarge: a message is not sent, since who receives it would end the stream.
var errTooLarge = fmt.Errorf("a message is too large: must have at most %d bytes", maxMessage)

func send(to messenger, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	if len(text) > maxMessage {
		return errTooLarge
	}
	return to.SendMsg(wrapperspb.Bytes(text))
}

// receive reads a message of at most maxMessage bytes.
func receive(from messenger, message any) error {
	var text wrapperspb.BytesValue
	if err := from.RecvMsg(&text); err != nil {
		return err
	}
	if len(text.Value) > maxMessage {
		return errTooLarge
	}
	if err := json.Unmarshal(text.Value, message); err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	return nil
}
