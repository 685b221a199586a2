package dns_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	wire "github.com/miekg/dns"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/dns"
)

// A fixture is a running source and what it delivered.
type fixture struct {
	t      *testing.T
	source *dns.Source

	mu      sync.Mutex
	names   map[string]*source.Addresses
	changed chan struct{}
}

func start(t *testing.T, settings dns.Settings) *fixture {
	t.Helper()
	settings.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := &fixture{t: t, source: dns.New(settings), names: map[string]*source.Addresses{}, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.source.Run(ctx, w.deliver) }()
	t.Cleanup(func() {
		began := time.Now()
		cancel()
		if err := <-ended; err != nil || time.Since(began) > timeout {
			t.Errorf("the source ended after %v: %v", time.Since(began), err)
		}
	})
	return w
}

func (f *fixture) deliver(_ context.Context, changes []source.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		object := c.Object.(*source.Addresses)
		if f.names[object.Name] = object; c.Deleted {
			delete(f.names, object.Name)
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// text is what a name stands for: its addresses, the refused ones behind a
// minus sign, and the problem in brackets.
func (f *fixture) text(name string) string {
	object := f.names[name]
	if object == nil {
		return "nothing"
	}
	var parts []string
	for _, a := range object.Addresses {
		parts = append(parts, a.String())
	}
	for _, a := range object.Refused {
		parts = append(parts, "-"+a.String())
	}
	if object.Problem != "" {
		parts = append(parts, "("+object.Problem+")")
	}
	return strings.Join(parts, " ")
}

const timeout = 20 * time.Second

// await waits until a name stands for something.
func (f *fixture) await(about, name, want string) {
	f.t.Helper()
	deadline := time.After(timeout)
	for {
		f.mu.Lock()
		got, changed := f.text(name), f.changed
		f.mu.Unlock()
		if got == want {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			f.t.Fatalf("%s: %s stands for %q, want %q", about, name, got, want)
		}
	}
}

// want asks for names and waits until they were looked up.
func (f *fixture) want(names ...string) {
	f.t.Helper()
	select {
	case <-f.source.Subscribe(names, nil):
	case <-time.After(timeout):
		f.t.Fatalf("%q were never looked up", names)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1", 0)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("60 A 192.0.2.%d", 200-i)
	}
	for name, records := range map[string][]string{
		"one.test.":           {"60 A 192.0.2.1"},
		"two.test.":           {"60 A 192.0.2.2", "60 A 192.0.2.1", "60 AAAA 2001:db8::1"},
		"six.test.":           {"60 AAAA 2001:db8::1"},
		"mapped.test.":        {"60 AAAA ::ffff:127.0.0.1"},
		"alias.test.":         {"60 CNAME hop.test."},
		"hop.test.":           {"60 CNAME two.test."},
		"nowhere.test.":       {"60 CNAME gone.test."},
		"loop.test.":          {"60 CNAME gone.test.", "60 CNAME loop2.test."},
		"text.test.":          {"60 TXT x"},
		"local.test.":         {"60 A 127.0.0.1", "60 A 192.0.2.1", "60 A 169.254.169.254", "60 A 0.0.0.0", "60 A 0.1.2.3", "60 A 224.0.0.1"},
		"local6.test.":        {"60 AAAA ::1", "60 AAAA fe80::1", "60 AAAA ::", "60 AAAA fd00:ec2::254", "60 AAAA fd00:ec2::253"},
		"many.test.":          many,
		"short.corpus.test.":  {"60 A 192.0.2.3"},
		"a.b.corpus.test.":    {"60 A 192.0.2.4"},
		"dotted.name.":        {"60 A 192.0.2.5"},
		"dotted.name.second.": {"60 A 192.0.2.6"},
		"under.second.":       {"60 A 192.0.2.7"},
		"empty.corpus.test.":  {"60 TXT x"},
		"empty.second.":       {"60 A 192.0.2.8"},
	} {
		s.set(name, records...)
	}
	s.fail("broken.test.", wire.RcodeServerFailure)
	s.fail("refused.test.", wire.RcodeRefused)
	w := start(t, dns.Settings{
		Port:       s.port,
		ResolvConf: file(t, "# comment\nnameserver 127.0.0.1\nsearch corpus.test second\noptions ndots:2 timeout:2 attempts:2\n"),
		Hosts: file(t, "127.0.0.1 localhost here.test\n192.0.2.77 Hosts.test other # hosts2.test\n2001:db8::77 hosts.test six.hosts.test\n"+
			"bad bad.test\nfe80::1%eth0 zone.test\n127.0.0.1\n"),
	})
	for name, want := range map[string]string{
		"one.test.":                        "192.0.2.1",
		"one.test":                         "192.0.2.1",
		"two.test.":                        "192.0.2.1 192.0.2.2",
		"six.test.":                        "2001:db8::1",
		"mapped.test.":                     "-127.0.0.1",
		"alias.test.":                      "192.0.2.1 192.0.2.2",
		"nowhere.test.":                    "(the DNS name nowhere.test. has no address)",
		"loop.test.":                       "(the DNS name loop.test. has no address)",
		"text.test.":                       "(the DNS name text.test. has no address)",
		"gone.test.":                       "(the DNS name gone.test. does not exist)",
		"gone.test":                        "(the DNS name gone.test does not exist)",
		"broken.test.":                     "(no resolver can resolve the DNS name broken.test.)",
		"refused.test.":                    "(no resolver can resolve the DNS name refused.test.)",
		"local.test.":                      "192.0.2.1 -0.0.0.0 -0.1.2.3 -127.0.0.1 -169.254.169.254 -224.0.0.1",
		"local6.test.":                     "fd00:ec2::253 -:: -::1 -fd00:ec2::254 -fe80::1",
		"short":                            "192.0.2.3",
		"a.b":                              "192.0.2.4",
		"short.":                           "(the DNS name short. does not exist)",
		"dotted.name":                      "192.0.2.6",
		"dotted.name.":                     "192.0.2.5",
		"x.dotted.name":                    "(the DNS name x.dotted.name does not exist)",
		"under":                            "192.0.2.7",
		"empty":                            "192.0.2.8",
		"hosts.test":                       "192.0.2.77",
		"hosts.test.":                      "192.0.2.77",
		"six.hosts.test":                   "2001:db8::77",
		"hosts2.test":                      "(the DNS name hosts2.test does not exist)",
		"here.test":                        "-127.0.0.1",
		"bad.test":                         "(the DNS name bad.test does not exist)",
		"zone.test":                        "(the DNS name zone.test does not exist)",
		strings.Repeat("l.", 126) + "test": "(the DNS name " + strings.Repeat("l.", 126) + "test does not exist)",
	} {
		w.want(name)
		w.await("a name", name, want)
	}
	w.want("many.test.")
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.names["many.test."].Addresses); n != 64 {
		t.Errorf("%d of 100 addresses, want 64", n)
	}
	if s.count("many.test. A tcp") == 0 {
		t.Error("a truncated answer was not asked for over TCP")
	}
	if n := s.count("two.test. AAAA"); n > 0 {
		t.Errorf("a name with A records was asked %d times for AAAA records", n)
	}
}

func TestAllowLocal(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1", 0)
	s.set("local.test.", "60 A 127.0.0.1", "60 A 192.0.2.1")
	w := start(t, dns.Settings{Port: s.port, ResolvConf: file(t, "nameserver 127.0.0.1\n"), AllowLocal: true})
	w.want("local.test.")
	w.await("a loopback address", "local.test.", "127.0.0.1 192.0.2.1")
}

// TestFollow: a name is looked up when its time is over, and not before.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1", 0)
	s.set("short.test.", "1 A 192.0.2.1")
	s.set("alias.test.", "1 CNAME long.test.")
	s.set("long.test.", "300 A 192.0.2.1")
	w := start(t, dns.Settings{Port: s.port, ResolvConf: file(t, "nameserver 127.0.0.1\n")})
	w.want("short.test.", "long.test.", "alias.test.")
	s.set("short.test.", "1 A 192.0.2.2")
	s.set("long.test.", "300 A 192.0.2.2")
	w.await("a new address", "short.test.", "192.0.2.2")
	w.await("an alias's time", "alias.test.", "192.0.2.2")
	const problem = " (no resolver can resolve the DNS name short.test.)"
	s.fail("short.test.", wire.RcodeServerFailure)
	w.await("a resolver that fails", "short.test.", "192.0.2.2"+problem)
	s.edit(func() { s.foreign = true })
	asked := s.count("short.test. A")
	s.fail("short.test.", 0)
	s.set("short.test.", "1 A 192.0.2.3")
	w.awaitCount(s, "short.test. A ", asked+2)
	w.await("answers to other questions", "short.test.", "192.0.2.2"+problem)
	s.edit(func() { s.foreign = false })
	w.await("a resolver that is back", "short.test.", "192.0.2.3")
	s.set("short.test.")
	w.await("a name without addresses", "short.test.", "(the DNS name short.test. has no address)")
	s.edit(func() { delete(s.records, "short.test.") })
	w.await("a name that is gone", "short.test.", "(the DNS name short.test. does not exist)")
	s.set("short.test.", "1 A 192.0.2.4")
	w.await("a name that is back", "short.test.", "192.0.2.4")
	if n := s.count("long.test. A"); n != 1 {
		t.Errorf("a name with much time left was asked for %d times", n)
	}
}

func (f *fixture) awaitCount(s *server, prefix string, atLeast int) {
	f.t.Helper()
	deadline := time.Now().Add(timeout)
	for s.begin(prefix) < atLeast {
		if time.Now().After(deadline) {
			f.t.Fatalf("%q begins %d questions, want %d", prefix, s.begin(prefix), atLeast)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestServers: where one server is silent or fails, the next one is asked.
func TestServers(t *testing.T) {
	t.Parallel()
	first := startServer(t, "127.0.0.1", 0)
	second := startServer(t, "127.0.0.2", first.port)
	second.set("a.test.", "1 A 192.0.2.1")
	second.set("b.test.", "1 A 192.0.2.2")
	first.fail("a.test.", wire.RcodeServerFailure)
	conf := file(t, "nameserver 127.0.0.1\nnameserver 127.0.0.2\noptions timeout:1 attempts:1\n")
	w := start(t, dns.Settings{Port: first.port, ResolvConf: conf})
	w.want("a.test")
	w.await("a server that fails", "a.test", "192.0.2.1")
	first.edit(func() { first.silent = true })
	w.want("b.test")
	w.await("a server that is silent", "b.test", "192.0.2.2")
	// resolv.conf is read again.
	second.set("a.test.", "1 A 192.0.2.9")
	if err := os.WriteFile(conf, []byte("nameserver 127.0.0.2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.await("another resolv.conf", "a.test", "192.0.2.9")
	second.edit(func() { second.silent = true })
	if err := os.WriteFile(conf, []byte("nameserver 127.0.0.2\nsearch one two three\noptions ndots:5 timeout:1 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.await("no server", "a.test", "192.0.2.9 (no resolver can resolve the DNS name a.test)")
	if n := second.count("a.test.two. A"); n != 0 {
		t.Errorf("a server that is silent for one search domain is asked %d times for the next", n)
	}
}

// TestSearchFails: while the resolver can't say whether the domain that had a
// name has it still, another domain's answer does not take its place.
func TestSearchFails(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1", 0)
	s.set("x.one.", "1 A 192.0.2.1")
	s.set("x.two.", "1 A 192.0.2.2")
	s.set("y.two.", "1 A 192.0.2.3")
	s.fail("y.one.", wire.RcodeServerFailure)
	w := start(t, dns.Settings{Port: s.port, ResolvConf: file(t, "nameserver 127.0.0.1\nsearch one two\n")})
	w.want("x", "y")
	w.await("the first domain", "x", "192.0.2.1")
	w.await("a domain behind one that fails", "y", "192.0.2.3")
	s.fail("x.one.", wire.RcodeServerFailure)
	w.await("a domain that fails", "x", "192.0.2.1 (no resolver can resolve the DNS name x)")
	s.set("y.two.", "1 A 192.0.2.4")
	w.await("a domain behind one that fails", "y", "192.0.2.4")
	s.edit(func() { delete(s.records, "x.one."); delete(s.fails, "x.one.") })
	w.await("a domain that has the name no more", "x", "192.0.2.2")
}

// TestSlots: names without an answer, more than are looked up at a time,
// keep waiting neither those that have addresses nor, once they failed, new
// ones.
func TestSlots(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1", 0)
	// A question that is not answered has its slot for longer than the test.
	w := start(t, dns.Settings{Port: s.port, ResolvConf: file(t, "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")})
	many := func(prefix string) []string {
		names := make([]string, 300)
		for i := range names {
			names[i] = fmt.Sprintf("%s%d.test.", prefix, i)
		}
		return names
	}
	s.set("known.test.", "1 A 192.0.2.1")
	w.want("known.test.")
	for _, name := range many("failed") {
		s.fail(name, wire.RcodeServerFailure)
	}
	w.want(many("failed")...)
	s.edit(func() { s.mute = []string{"failed", "fresh"}; s.asked = nil })
	w.awaitCount(s, "failed", 16)
	s.set("known.test.", "1 A 192.0.2.2")
	s.set("new.test.", "60 A 192.0.2.3")
	w.await("names that fail", "known.test.", "192.0.2.2")
	w.want("new.test.")
	w.await("names that fail", "new.test.", "192.0.2.3")
	w.source.Subscribe(many("fresh"), nil)
	w.awaitCount(s, "fresh", 64)
	s.set("known.test.", "1 A 192.0.2.4")
	w.await("new names that are not answered", "known.test.", "192.0.2.4")
	if failed, fresh := s.begin("failed"), s.begin("fresh"); failed != 16 || fresh != 64 {
		t.Errorf("%d names that failed and %d new ones are looked up at a time, want 16 and 64", failed, fresh)
	}
}

func TestWant(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1", 0)
	for _, name := range []string{"a.test.", "b.test.", "c.test."} {
		s.set(name, "1 A 192.0.2.1")
	}
	w := start(t, dns.Settings{Port: s.port, ResolvConf: file(t, "nameserver 127.0.0.1\n")})
	w.want()
	w.want("a.test", "b.test")
	w.want("a.test")
	w.await("a name", "b.test", "192.0.2.1")
	<-w.source.Subscribe(nil, []string{"a.test", "unwanted.test"})
	w.await("a name without a subscription", "a.test", "nothing")
	asked := s.count("a.test. A")
	w.awaitCount(s, "b.test. A ", s.count("b.test. A")+2)
	if again := s.count("a.test. A"); again != asked {
		t.Error("a name without a subscription is still looked up")
	}
	w.want("a.test")
	w.await("a name that is wanted again", "a.test", "192.0.2.1")

	s.edit(func() { s.silent = true })
	pending := w.source.Subscribe([]string{"c.test"}, nil)
	w.awaitCount(s, "c.test. A ", 1)
	select {
	case <-pending:
		t.Error("a name that was not looked up counts as delivered")
	default:
	}
	<-w.source.Subscribe(nil, []string{"c.test"})
	<-pending
	w.await("a name that was wanted in vain", "c.test", "nothing")
}
