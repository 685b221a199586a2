package dns

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestTTL(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Second: time.Second, time.Minute: time.Minute, time.Hour: time.Hour, 48 * time.Hour: time.Hour,
	} {
		var h history
		if _, pause := h.record("x", answer{outcome: resolved, ttl: ttl}, time.Time{}); pause != want {
			t.Errorf("an answer for %v is used for %v, want %v", ttl, pause, want)
		}
	}
}

// TestFailures: tries get rarer, and addresses stay for a day while the
// resolvers can't say anything, and not at all when they do.
func TestFailures(t *testing.T) {
	list := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	away := answer{outcome: unknown, err: errors.New("away")}
	now := time.Unix(1e9, 0)
	h := history{failures: 3}
	h.record("x", answer{outcome: resolved, addresses: list, ttl: time.Minute, from: "x."}, now)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		now = now.Add(time.Minute)
		object, pause := h.record("x", away, now)
		if pause != want*time.Second || len(object.Addresses) != 1 || object.Problem == "" {
			t.Fatalf("after a failure: %+v, again in %v, want in %ds", object, pause, want)
		}
	}
	h.failures = 1000
	if _, pause := h.record("x", away, now); pause != 30*time.Second {
		t.Errorf("after many failures again in %v", pause)
	}
	silent := history{}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if _, pause := silent.record("x", away, now); pause != want*time.Second {
			t.Fatalf("a name that never had addresses is tried again in %v, want in %ds", pause, want)
		}
	}
	if _, pause := silent.record("x", answer{outcome: missing}, now); pause != 30*time.Second {
		t.Errorf("a name that does not exist is tried again in %v", pause)
	}
	day := now.Add(24*time.Hour - 8*time.Minute)
	if object, _ := h.record("x", away, day); len(object.Addresses) != 1 || h.from != "x." {
		t.Errorf("within a day: %+v", object)
	}
	if object, _ := h.record("x", away, day.Add(2*time.Hour)); len(object.Addresses) != 0 || h.from != "" {
		t.Errorf("after a day: %+v", object)
	}
	for _, o := range []outcome{missing, empty} {
		h.record("x", answer{outcome: resolved, addresses: list, ttl: time.Minute}, now)
		if object, pause := h.record("x", answer{outcome: o}, now); len(object.Addresses) != 0 || pause != time.Second {
			t.Errorf("an answer without addresses: %+v, again in %v", object, pause)
		}
	}
}

func TestConfig(t *testing.T) {
	s := New(Settings{ResolvConf: "/nowhere", Hosts: "/nowhere"})
	if c := s.config(); len(c.Servers) != 1 || c.Servers[0] != "127.0.0.1" || c.Ndots != 1 {
		t.Errorf("without resolv.conf: %+v", c)
	}
	if got := hostsAddresses(read("/nowhere"), "x"); len(got) != 0 {
		t.Errorf("without hosts: %v", got)
	}
}

// TestForeignRecords: records of other names are ignored, and a loop of aliases
// ends.
func TestForeignRecords(t *testing.T) {
	reply := new(dns.Msg).SetQuestion("x.test.", dns.TypeA)
	for _, text := range []string{
		"other.test. 60 A 192.0.2.1", "x.test. 60 CNAME y.test.", "y.test. 60 CNAME X.test.", "x.test. 60 AAAA 2001:db8::1", "z.test. 60 CNAME other.test.",
	} {
		record, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		reply.Answer = append(reply.Answer, record)
	}
	if a := readReply(reply, "x.test.", dns.TypeA); a.outcome != empty || len(a.addresses) > 0 {
		t.Errorf("got %+v", a)
	}
}

// FuzzReply: for all replies of a name server, addresses are few, sorted and
// without zones, and used for no longer than they may be.
func FuzzReply(f *testing.F) {
	for _, records := range [][]string{
		{"x.test. 60 A 192.0.2.1"}, {"x.test. 0 CNAME y.test.", "y.test. 4294967295 A 192.0.2.1"}, {"x.test. 1 CNAME x.test."}, {"x.test. 1 AAAA ::1"},
	} {
		m := new(dns.Msg).SetQuestion("x.test.", dns.TypeA)
		for _, text := range records {
			record, err := dns.NewRR(text)
			if err != nil {
				f.Fatal(err)
			}
			m.Answer = append(m.Answer, record)
		}
		packed, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed, false)
		f.Add(packed, true)
	}
	f.Fuzz(func(t *testing.T, packed []byte, six bool) {
		reply, kind := new(dns.Msg), dns.TypeA
		if reply.Unpack(packed) != nil {
			return
		}
		if six {
			kind = dns.TypeAAAA
		}
		a := readReply(reply, "x.test.", kind)
		if (a.outcome == resolved) != (len(a.addresses) > 0) || a.ttl < 0 || a.ttl > maxTTL || len(a.addresses) > maxAddresses {
			t.Fatalf("%+v", a)
		}
		for i, address := range a.addresses {
			if !address.IsValid() || address.Zone() != "" || i > 0 && !a.addresses[i-1].Less(address) {
				t.Fatalf("%v", a.addresses)
			}
		}
	})
}
