package reports_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

// A control gets reports of edges in this process.
type control struct {
	*reports.Edges
	t        *testing.T
	listener *bufconn.Listener
}

func newControl(t *testing.T) *control {
	c := &control{t: t, listener: bufconn.Listen(1 << 16), Edges: reports.NewEdges(func(ctx context.Context) (name, group string, err error) {
		who := metadata.ValueFromIncomingContext(ctx, "edge")
		if len(who) == 0 {
			return "", "", errors.New("no name")
		}
		name, group, _ = strings.Cut(who[0], "/")
		return name, group, nil
	})}
	server := grpc.NewServer()
	c.Register(server)
	go func() { _ = server.Serve(c.listener) }()
	t.Cleanup(server.Stop)
	return c
}

func (c *control) connect() *grpc.ClientConn {
	c.t.Helper()
	connection, err := grpc.NewClient("passthrough:control", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.listener.DialContext(ctx) }))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { connection.Close() })
	return connection
}

func as(t *testing.T, edge string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "edge", edge)
}

// interval is longer than the time between two messages that a control takes: otherwise answers wait behind others.
const interval = 60 * time.Millisecond

// start has an edge report, until the function is called.
func (c *control) start(edge string, r *reports.Reporter) (stop func()) {
	c.t.Helper()
	if r.Status == nil {
		r.Status = func(context.Context) reports.Status { return reports.Status{Release: edge} }
	}
	r.Interval = interval
	ctx, cancel := context.WithCancel(as(c.t, edge))
	ended := make(chan error, 1)
	go func() { ended <- r.Report(ctx, c.connect()) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; status.Code(errors.Unwrap(err)) != codes.Canceled {
			c.t.Errorf("%s: %v", edge, err)
		}
	})
	c.t.Cleanup(stop)
	c.reported(edge)
	return stop
}

// reported waits for the first status of an edge, and returns what is known then.
func (c *control) reported(edge string) (found reports.Edge) {
	c.t.Helper()
	name, _, _ := strings.Cut(edge, "/")
	headgatetest.Eventually(c.t, name+" has reported", func() bool {
		for _, e := range c.List() {
			if e.Name == name && !e.At.IsZero() {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

func (c *control) names() string {
	var names []string
	for _, e := range c.List() {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// A status arrives as it was said, and the edge is gone when its stream ends.
func TestStatus(t *testing.T) {
	c, before := newControl(t), time.Now()
	said := reports.Status{
		Release: "v1", NGINX: "1.28.0", Started: before.Add(-time.Hour).Round(0).UTC(), Serving: true, Synced: true, Problem: "p",
		Findings: []finding.Finding{{Object: "o", Field: "f", Code: finding.MissingCapability, Message: "m", Effect: "e"}}, MoreFindings: 2,
	}
	stop := c.start("edge/shops", &reports.Reporter{Status: func(context.Context) reports.Status { return said }})
	c.start("another", &reports.Reporter{})
	got := c.reported("edge")
	if diff := cmp.Diff(said, got.Status); diff != "" {
		t.Error(diff)
	}
	if got.Group != "shops" || got.Since.Before(before) || got.At.Before(got.Since) {
		t.Errorf("%+v", got)
	}
	if names := c.names(); names != "another edge" {
		t.Error(names)
	}
	stop()
	headgatetest.Eventually(t, "the edge is gone", func() bool { return c.names() == "another" })
}

// long is a text that is cut: the bound is in the middle of a letter.
var long = strings.Repeat("x", 499) + strings.Repeat("é", 1000)

// excess is a status with too much of everything.
func excess() *reports.Status {
	s := &reports.Status{Release: long, NGINX: long, Problem: long, MoreFindings: 1 << 62, Requests: map[string]reports.Counts{long: {1}}}
	for range 150 {
		s.Findings = append(s.Findings, finding.Finding{Object: long, Field: long, Code: finding.Code(long), Message: long, Effect: long})
	}
	for i := range 1500 {
		s.Requests[fmt.Sprint("host-", i)] = reports.Counts{1}
	}
	return s
}

// A reporter cuts what is too much, and a control does so too: an edge need not.
func TestStatusIsBounded(t *testing.T) {
	c := newControl(t)
	c.start("reporter", &reports.Reporter{Status: func(context.Context) reports.Status { return *excess() }})
	raw := c.open("raw")
	few := excess() // as much as a message takes
	few.Findings = few.Findings[:101]
	for i := range few.Findings {
		f := &few.Findings[i]
		f.Object, f.Field, f.Code, f.Message, f.Effect = long[:600], long[:600], finding.Code(long[:600]), long[:600], long[:600]
	}
	raw.say(reports.FromEdge{Status: few})
	short := long[:499]
	one := finding.Finding{Object: short, Field: short, Code: finding.Code(short), Message: short, Effect: short}
	for _, edge := range []string{"reporter", "raw"} {
		got := c.reported(edge)
		if got.Status.Release != short || got.Status.NGINX != short || got.Status.Problem != short {
			t.Errorf("%s: texts have %d, %d, %d bytes", edge, len(got.Status.Release), len(got.Status.NGINX), len(got.Status.Problem))
		}
		if len(got.Status.Findings) != 100 || got.Status.MoreFindings < 1 || got.Status.MoreFindings > 1_000_050 {
			t.Fatalf("%s: %d findings and %d more", edge, len(got.Status.Findings), got.Status.MoreFindings)
		}
		if diff := cmp.Diff(one, got.Status.Findings[99]); diff != "" {
			t.Errorf("%s: %s", edge, diff)
		}
		if got.Status.Requests != nil {
			t.Errorf("%s: requests are kept with the edge", edge)
		}
	}
	if requests := c.Requests(); len(requests) != 1000 || requests[long] != (reports.Counts{}) {
		t.Errorf("requests of %d hosts", len(requests))
	}
}

// A status that would be too large as it is written goes without its findings.
func TestFindingsTooLarge(t *testing.T) {
	c := newControl(t)
	text := strings.Repeat("\x01", 500) // six bytes each in JSON
	var findings []finding.Finding
	for range 100 {
		findings = append(findings, finding.Finding{Object: text, Field: text, Message: text, Effect: text})
	}
	c.start("edge", &reports.Reporter{Status: func(context.Context) reports.Status { return reports.Status{Findings: findings, MoreFindings: 7} }})
	if got := c.reported("edge"); len(got.Status.Findings) != 0 || got.Status.MoreFindings != 107 {
		t.Errorf("%d findings and %d more", len(got.Status.Findings), got.Status.MoreFindings)
	}
}

// A counter is what an edge counts.
type counter struct {
	mu     sync.Mutex
	counts map[string]reports.Counts
}

func (c *counter) set(host string, counts reports.Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[host] = counts
}

func (c *counter) remove(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.counts, host)
}

func (c *counter) now() map[string]reports.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Counts of two edges add up, and a host that counts from 0 again adds to what it had.
func TestRequests(t *testing.T) {
	c := newControl(t)
	one, two := counter{counts: map[string]reports.Counts{}}, counter{counts: map[string]reports.Counts{}}
	for name, of := range map[string]*counter{"one": &one, "two": &two} {
		c.start(name, &reports.Reporter{Requests: of.now})
	}
	want := func(what string, want map[string]reports.Counts) {
		t.Helper()
		headgatetest.Eventually(t, what, func() bool { return cmp.Equal(c.Requests(), want) })
	}
	one.set("a.test", reports.Counts{2: 5, 5: 1})
	two.set("a.test", reports.Counts{2: 7})
	two.set("b.test", reports.Counts{4: 1})
	want("edges add up", map[string]reports.Counts{"a.test": {2: 12, 5: 1}, "b.test": {4: 1}})
	one.set("a.test", reports.Counts{2: 6, 5: 1})
	want("a request is added", map[string]reports.Counts{"a.test": {2: 13, 5: 1}, "b.test": {4: 1}})
	two.set("a.test", reports.Counts{2: 2})
	want("a host begins again", map[string]reports.Counts{"a.test": {2: 15, 5: 1}, "b.test": {4: 1}})
	two.remove("b.test")
	one.set("c.test", reports.Counts{1: 1})
	want("a host is gone", map[string]reports.Counts{"a.test": {2: 15, 5: 1}, "b.test": {4: 1}, "c.test": {1: 1}})
}

// Another connection adds only what is new.
func TestRequestsOverConnections(t *testing.T) {
	c := newControl(t)
	of := counter{counts: map[string]reports.Counts{"a.test": {2: 5}}}
	r := &reports.Reporter{Requests: of.now}
	stop := c.start("edge", r)
	headgatetest.Eventually(t, "requests are known", func() bool { return c.Requests()["a.test"] == reports.Counts{2: 5} })
	stop()
	of.set("a.test", reports.Counts{2: 6})
	c.start("edge", r)
	headgatetest.Eventually(t, "the new one is", func() bool { return c.Requests()["a.test"] != reports.Counts{2: 5} })
	if got := c.Requests()["a.test"]; got != (reports.Counts{2: 6}) {
		t.Error(got)
	}
}

// More hosts than a message takes have their turn one after another, once each.
func TestManyHosts(t *testing.T) {
	c := newControl(t)
	of := counter{counts: map[string]reports.Counts{}}
	for i := range 2500 {
		of.counts[fmt.Sprint("host-", i)] = reports.Counts{2: 1}
	}
	c.start("edge", &reports.Reporter{Requests: of.now})
	if n := len(c.Requests()); n == 2500 {
		t.Error("one message has all hosts")
	}
	headgatetest.Eventually(t, "all hosts are known", func() bool { return len(c.Requests()) == 2500 })
	if diff := cmp.Diff(of.counts, c.Requests()); diff != "" {
		t.Error(diff)
	}
}

// answering returns a Reporter whose workers have these versions.
func answering(pid int, version string) *reports.Reporter {
	return &reports.Reporter{Holdings: func(_ context.Context, units []unit.Key) ([]dataplane.Holding, error) {
		h := dataplane.Holding{State: dataplane.State{PID: pid, Accepting: []dataplane.Worker{{PID: pid}}, Retries: map[string]int64{"of a namespace": 1}}}
		for range units {
			h.Units = append(h.Units, dataplane.Unit{Version: version, Payload: []byte(`"a key"`)})
		}
		return []dataplane.Holding{h}, nil
	}}
}

var asked = []unit.Key{{Kind: unit.Host, Name: "a.test"}}

// All edges answer, with versions alone.
func TestAsk(t *testing.T) {
	c := newControl(t)
	c.start("one", answering(1, "v1"))
	c.start("two", answering(2, "v2"))
	c.start("broken", &reports.Reporter{Holdings: func(context.Context, []unit.Key) ([]dataplane.Holding, error) { return nil, errors.New(long) }})
	answers := c.Ask(t.Context(), asked)
	if len(answers) != 3 || answers[0].Edge != "broken" || answers[0].Err == nil || answers[0].Err.Error() != long[:499] {
		t.Fatalf("%+v", answers)
	}
	for i, name := range []string{"one", "two"} {
		a, pid := answers[i+1], i+1
		want := []dataplane.Holding{{State: dataplane.State{PID: pid, Accepting: []dataplane.Worker{{PID: pid}}}, Units: []dataplane.Unit{{Version: fmt.Sprint("v", pid), Payload: []byte("null")}}}}
		if a.Edge != name || a.Err != nil {
			t.Errorf("%+v", a)
		}
		if diff := cmp.Diff(want, a.Holdings); diff != "" {
			t.Error(diff)
		}
	}
	// With nothing to ask about, there is the state.
	if answers := c.Ask(t.Context(), nil); len(answers) != 3 || len(answers[1].Holdings) != 1 || answers[1].Holdings[0].State.PID != 1 {
		t.Errorf("%+v", answers)
	}
	if answers := c.Ask(t.Context(), make([]unit.Key, reports.MaxUnits+1)); len(answers) != 3 || answers[1].Err == nil {
		t.Errorf("too many units are asked for: %+v", answers)
	}
}

// An answer that is too large is a problem of this edge, and its stream goes on.
func TestAnswerTooLarge(t *testing.T) {
	c := newControl(t)
	c.start("edge", answering(1, strings.Repeat("v", 1<<20)))
	if a := c.Ask(t.Context(), asked)[0]; a.Err == nil || !strings.Contains(a.Err.Error(), "too large") {
		t.Errorf("%.200v", a)
	}
	if a := c.Ask(t.Context(), nil)[0]; a.Err != nil || len(a.Holdings) != 1 {
		t.Errorf("%+v", a)
	}
}

// An edge that does not answer, and one that goes away meanwhile, have errors; the others are heard.
func TestAskWithoutAnswer(t *testing.T) {
	c := newControl(t)
	c.start("quick", answering(1, "v1"))
	c.open("silent").say(reports.FromEdge{})
	goes := c.open("goes")
	goes.say(reports.FromEdge{})
	headgatetest.Eventually(t, "all are connected", func() bool { return c.names() == "goes quick silent" })
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan []reports.Answer, 1)
	go func() { answered <- c.Ask(ctx, asked) }()
	goes.wait() // It is asked, and others are too.
	goes.end()
	headgatetest.Eventually(t, "it is gone", func() bool { return c.names() == "quick silent" })
	headgatetest.Eventually(t, "two have answered", func() bool { return c.Waiting() == 1 })
	cancel()
	answers := <-answered
	var got []string
	for _, a := range answers {
		got = append(got, fmt.Sprint(a.Edge, ": ", len(a.Holdings), " ", a.Err))
	}
	if diff := cmp.Diff([]string{"goes: 0 the edge has gone", "quick: 1 <nil>", "silent: 0 the edge does not answer"}, got); diff != "" {
		t.Error(diff)
	}
	if n := c.Waiting(); n != 0 {
		t.Errorf("%d questions are kept", n)
	}
}

// A message that is too large, or no message at all, ends the stream that it came on, and no other one.
func TestWrongMessages(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"too large": {`{"status": {"problem": "` + strings.Repeat("x", 1<<20) + `"}}`, "too large"},
		"no JSON":   {`{"status": `, "read a message"},
		"other":     {`{"status": {"requests": {"a.test": [-1]}}}`, "read a message"},
	} {
		t.Run(name, func(t *testing.T) {
			control := newControl(t)
			control.start("fine", answering(1, "v1"))
			wrong := control.open("wrong")
			wrong.send(c.text)
			if err := wrong.stream.RecvMsg(&wrapperspb.BytesValue{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v", err)
			}
			headgatetest.Eventually(t, "it is gone", func() bool { return control.names() == "fine" })
			if answers := control.Ask(t.Context(), asked); len(answers) != 1 || answers[0].Err != nil {
				t.Errorf("%+v", answers)
			}
		})
	}
}

// An answer to no question is dropped.
func TestUnaskedAnswer(t *testing.T) {
	c := newControl(t)
	raw := c.open("raw")
	raw.send(`{"answer": {"number": 1}}`)
	raw.say(reports.FromEdge{Status: &reports.Status{}})
	c.reported("raw")
}

// Who is not known has no stream.
func TestWithoutName(t *testing.T) {
	c := newControl(t)
	r := &reports.Reporter{Interval: interval, Status: func(context.Context) reports.Status { return reports.Status{} }}
	if err := r.Report(t.Context(), c.connect()); status.Code(errors.Unwrap(err)) != codes.PermissionDenied {
		t.Error(err)
	}
	if names := c.names(); names != "" {
		t.Error(names)
	}
}

// A raw edge says what a test has it say.
type raw struct {
	t      *testing.T
	stream grpc.ClientStream
	end    func()
}

func (c *control) open(edge string) raw {
	c.t.Helper()
	ctx, cancel := context.WithCancel(as(c.t, edge))
	c.t.Cleanup(cancel)
	stream, err := c.connect().NewStream(ctx, &reports.Description().Streams[0], "/headgate.edge.v1.Reports/Report")
	if err != nil {
		c.t.Fatal(err)
	}
	return raw{c.t, stream, cancel}
}

func (r raw) send(text string) {
	r.t.Helper()
	if err := r.stream.SendMsg(wrapperspb.Bytes([]byte(text))); err != nil {
		r.t.Fatal(err)
	}
}

func (r raw) say(message reports.FromEdge) {
	r.t.Helper()
	if err := reports.Send(r.stream, message); err != nil {
		r.t.Fatal(err)
	}
}

// wait waits for a question.
func (r raw) wait() {
	r.t.Helper()
	if err := r.stream.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
		r.t.Fatal(err)
	}
}
