package split_test

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// An edge serves what its control reads, and what changes there.
func TestSplit(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	control := p.control("control").start().ready()
	edge := p.edge("edge", control.address).start().ready()
	if status, body := edge.get("a.test", "/"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	edge.serves("b.test", http.StatusNotFound)
	p.apply(one(t, "a.test", "b.test"))
	edge.serves("b.test", http.StatusOK)
}

// An edge that starts without a control waits, unready, and says for what.
func TestEdgeWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	control := p.control("control")
	edge := p.edge("edge", control.address).start()
	edge.until("the health check says what is waited for", func() bool {
		status, text := edge.health()
		return status == http.StatusInternalServerError && strings.Contains(text, "waiting for the control at "+control.address+": ")
	})
	control.start()
	edge.ready().serves("a.test", http.StatusOK)
}

// Without its control an edge serves on, over a restart too, and gets what has changed meanwhile once there is one.
func TestControlIsAway(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	control := p.control("control").start().ready()
	edge := p.edge("edge", control.address, "--state-dir", p.path("state")).start().ready()
	l := edge.load("a.test")
	control.crash()
	edge.until("it knows that the control is away", func() bool { return strings.Contains(edge.log.String(), "there is no connection to the control") })
	p.apply(one(t, "a.test", "b.test"))
	if status, text := edge.health(); status != http.StatusOK {
		t.Errorf("without a control, the edge is not ready: %d %s", status, text)
	}
	l.wantNoneLost(t)
	edge.kill()
	edge.start().ready()
	if status, body := edge.get("a.test", "/"); status != http.StatusOK {
		t.Errorf("after a restart without a control: %d %s", status, body)
	}
	l = edge.load("a.test")
	control.start()
	edge.serves("b.test", http.StatusOK)
	l.wantNoneLost(t)
}

// Edges serve on when one of two controls ends, and when both do.
func TestControlsEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	first, second := p.control("first").start().ready(), p.control("second").start().ready()
	w := cableTo(t, first.address)
	edge := p.edge("edge", w.address()).start().ready()
	l := edge.load("a.test")
	w.lead(second.address)
	first.crash()
	p.apply(one(t, "a.test", "b.test"))
	edge.serves("b.test", http.StatusOK)
	second.signal(syscall.SIGTERM)
	<-second.ended
	p.apply(one(t, "a.test", "b.test", "c.test"))
	second.start()
	edge.serves("c.test", http.StatusOK)
	l.wantNoneLost(t)
}

// While nothing gets through between an edge and its control, the edge serves on. Then it gets what is newest.
func TestPartition(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	control := p.control("control").start().ready()
	w := cableTo(t, control.address)
	cut, other := p.edge("cut", w.address()).start().ready(), p.edge("other", control.address).start().ready()
	l := cut.load("a.test")
	w.hold()
	for _, hosts := range [][]string{{"a.test", "b.test"}, {"a.test", "c.test"}, {"a.test", "d.test"}} {
		p.apply(one(t, hosts...))
		other.serves(hosts[1], http.StatusOK)
	}
	// Long enough for both sides to notice.
	lasts := partition
	if os.Getenv("HEADGATE_NIGHTLY") != "" {
		lasts = longPartition
	}
	time.Sleep(lasts)
	w.release()
	cut.serves("d.test", http.StatusOK)
	cut.serves("b.test", http.StatusNotFound)
	l.wantNoneLost(t)
}

// A partition lasts so long, by day and at night.
const partition, longPartition = 5 * time.Second, 5 * time.Minute

// An edge that takes nothing, and one whose NGINX can't be reloaded, hold up no other one.
func TestSlowAndBrokenEdges(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	control := p.control("control").start().ready()
	slow, quick := p.edge("slow", control.address).start().ready(), p.edge("quick", control.address).start().ready()
	broken := p.edge("broken", control.address)
	broken.breakReloads()
	broken.start().ready()
	ofSlow, ofBroken := slow.load("a.test"), broken.load("a.test")
	slow.signal(syscall.SIGSTOP)
	p.apply(one(t, "a.test", "b.test") + headgatetest.ConfigMap("headgate", "worker-processes: \"1\""))
	quick.serves("b.test", http.StatusOK)
	// What takes no reload is served there too.
	broken.serves("b.test", http.StatusOK)
	p.apply(one(t, "a.test", "c.test"))
	quick.serves("c.test", http.StatusOK)
	broken.serves("c.test", http.StatusOK)
	slow.signal(syscall.SIGCONT)
	slow.serves("c.test", http.StatusOK)
	ofSlow.wantNoneLost(t)
	ofBroken.wantNoneLost(t)
}

// Certificates of both are replaced while they run.
func TestCertificatesRotate(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one(t, "a.test"))
	control := p.control("control").start().ready()
	edge := p.edge("edge", control.address).start().ready()
	l := edge.load("a.test")
	p.newAuthority()
	p.issueControl()
	p.issueEdge("edge", "")
	edge.until("it has another connection", func() bool { return strings.Count(control.log.String(), "an edge has connected") > 1 })
	p.apply(one(t, "a.test", "b.test"))
	edge.serves("b.test", http.StatusOK)
	l.wantNoneLost(t)
}

// What is served can be looked at where it is: units in an edge, reasons in the control. The other one says so.
func TestInspect(t *testing.T) {
	t.Parallel()
	pair := headgatetest.NewKeyPair(t, "a.test", "a.test")
	ingress := strings.Replace(one(t, "a.test"), "spec:\n", "spec:\n  tls: [{hosts: [a.test], secretName: pair}]\n", 1)
	p := newPlace(t, ingress+headgatetest.TLSSecret("pair", pair))
	control := p.control("control").start().ready()
	edge := p.edge("edge", control.address).start().ready()
	edge.until("the control shows the edge", func() bool { return strings.Contains(control.run("dbg", "edges"), "serving, synced") })
	for _, c := range []struct {
		of   *process
		line string
		want string
	}{
		{control, "dbg edges", "edge "},
		{control, "dbg findings -o json", `"findings"`},
		{control, "dbg backends list", "default-"},
		{control, "explain http://a.test/", "NGINX        of the edge edge: generation 1 serves"},
		{control, "dbg backends all", "this is a control, and NGINX runs in its edges"},
		{control, "dbg certs get a.test", "this is a control, and NGINX runs in its edges"},
		{control, "dbg conf", "this is a control, and NGINX runs in its edges"},
		{edge, "dbg backends all", `"name": "default-`},
		{edge, "dbg routes a.test", "a.test"},
		{edge, "dbg certs get a.test", string(pair.Certificate)},
		{edge, "dbg certs get unknown.test", "BEGIN CERTIFICATE"},
		{edge, "dbg conf", "worker_processes"},
		{edge, "dbg edges", "ask the control"},
		{edge, "explain http://a.test/", "this is an edge, which does not know where its units come from: ask the control"},
	} {
		if got := c.of.run(strings.Fields(c.line)...); !strings.Contains(got, c.want) || strings.Contains(got, "PRIVATE KEY") {
			t.Errorf("%s of %s: %s\nwant %s", c.line, c.of.name, got, c.want)
		}
	}
}
