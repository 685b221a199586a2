package dataplane_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// sessionHosts are two hosts without a TLS policy and two with the same one.
func sessionHosts(t *testing.T) string {
	t.Helper()
	return served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "tls", "plain.test", "other.test", "own.test", "same.test", "*.w.test")) +
		securedHost("plain", "plain.test") + securedHost("other", "other.test") + securedHost("wild", "*.w.test", "ssl-ciphers: "+weakName) +
		securedHost("own", "own.test", "ssl-ciphers: "+weakName) + securedHost("same", "same.test", "ssl-ciphers: "+weakName)
}

// A wallet keeps one session, for all names.
type wallet struct{ session *tls.ClientSessionState }

func (w *wallet) Put(_ string, s *tls.ClientSessionState) {
	if s != nil {
		w.session = s
	}
}

func (w *wallet) Get(string) (*tls.ClientSessionState, bool) { return w.session, w.session != nil }

// resumed makes a session under one name and reports for each other name whether
// it is resumed there.
func resumed(t *testing.T, g *headgatetest.Instance, version uint16, name string, others ...string) []bool {
	t.Helper()
	made := &wallet{}
	visit(t, g, version, name, made)
	if made.session == nil {
		t.Fatalf("%s, %s: no session", name, tls.VersionName(version))
	}
	var got []bool
	for _, other := range others {
		got = append(got, visit(t, g, version, other, &wallet{made.session}))
	}
	return got
}

// visit makes one connection with one request, whose answer brings the session
// of TLS 1.3, and reports whether a session was resumed.
func visit(t *testing.T, g *headgatetest.Instance, version uint16, name string, w *wallet) bool {
	t.Helper()
	connection := tls.Client(headgatetest.Dial(t, g.HTTPS), &tls.Config{
		ServerName: name, MinVersion: version, MaxVersion: version, InsecureSkipVerify: true, ClientSessionCache: w,
	})
	defer connection.Close()
	request, err := http.NewRequest(http.MethodGet, "https://"+name+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	if err := request.Write(connection); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if answer, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
		t.Fatalf("%s: %v, %.100q", name, err, answer)
	}
	return connection.ConnectionState().DidResume
}

// resumedInPython does the same for sessions of TLS 1.2 that the server keeps,
// or for tickets of it.
func resumedInPython(t *testing.T, g *headgatetest.Instance, kind, name string, others ...string) []bool {
	t.Helper()
	args := append([]string{"testdata/resume.py", strconv.Itoa(int(g.HTTPS)), kind, name}, others...)
	out, err := exec.CommandContext(t.Context(), "python3", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got []bool
	for word := range strings.FieldsSeq(string(out)) {
		got = append(got, word == "yes")
	}
	return got
}

// A session is resumed on its host, by each of the ways that TLS has for it,
// and by any worker. It does not get to a host with a policy, nor away from
// one: what was agreed on there may be less than what is asked for here.
func TestSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		tickets bool
		try     func(*testing.T, *headgatetest.Instance, string, ...string) []bool
	}{
		{"TLS 1.3", false, resumedInGo(tls.VersionTLS13)},
		{"TLS 1.3, tickets", true, resumedInGo(tls.VersionTLS13)},
		{"TLS 1.2, tickets", true, resumedInGo(tls.VersionTLS12)},
		{"TLS 1.2, ids", false, func(t *testing.T, g *headgatetest.Instance, name string, others ...string) []bool {
			return resumedInPython(t, g, "id", name, others...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := headgatetest.Start(t, headgatetest.Options{Manifests: sessionHosts(t) + headgatetest.Config(fmt.Sprint("ssl-session-tickets: ", c.tickets))})
			for _, s := range []struct {
				made string
				want map[string]bool
			}{
				{"plain.test", map[string]bool{"plain.test": true, "own.test": false, "a.w.test": false}},
				{"own.test", map[string]bool{"own.test": true, "plain.test": false, "same.test": false, "a.w.test": false}},
				{"a.w.test", map[string]bool{"a.w.test": true, "b.w.test": true, "own.test": false, "plain.test": false}},
			} {
				for other, want := range s.want {
					for _, got := range c.try(t, g, s.made, other, other, other, other) {
						if got != want {
							t.Errorf("made on %s, resumed on %s: %v", s.made, other, got)
						}
					}
				}
			}
		})
	}
}

func resumedInGo(version uint16) func(*testing.T, *headgatetest.Instance, string, ...string) []bool {
	return func(t *testing.T, g *headgatetest.Instance, name string, others ...string) []bool {
		return resumed(t, g, version, name, others...)
	}
}

// Sessions outlive what does not concern their host, reloads too, and end with
// a change of its policy.
func TestSessionsThroughChanges(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "tls", "a.test", "b.test")) + securedHost("a", "a.test") + securedHost("b", "b.test")})
	made := &wallet{}
	visit(t, g, tls.VersionTLS13, "a.test", made)
	expect := func(want bool) {
		t.Helper()
		if got := visit(t, g, tls.VersionTLS13, "a.test", &wallet{made.session}); got != want {
			t.Errorf("resumed: %v, want %v", got, want)
		}
	}
	expect(true)
	g.ApplyReloading(securedHost("b", "b.test", "ssl-ciphers: "+weakName))
	expect(true)
	g.Apply(securedHost("a", "a.test", "ssl-ciphers: "+strongName))
	expect(false)
	visit(t, g, tls.VersionTLS13, "a.test", made)
	expect(true)
	reload(t, g)
	expect(true)
	g.Apply(headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "renewed", "a.test", "b.test")))
	expect(true)
	g.Apply(securedHost("a", "a.test", "ssl-ciphers: "+weakName))
	expect(false)
}

// A session that was made under a name that is served must not let in names
// without a host.
func TestSessionsDoNotHelpUnknownNames(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: sessionHosts(t) + headgatetest.Config("ssl-reject-handshake: true", "ssl-session-tickets: true")})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		made := &wallet{}
		visit(t, g, version, "plain.test", made)
		if !visit(t, g, version, "plain.test", made) {
			t.Errorf("%s: no session to try with", tls.VersionName(version))
		}
		config := &tls.Config{ServerName: "unknown.test", MinVersion: version, MaxVersion: version, ClientSessionCache: &wallet{made.session}}
		if state, err := shake(t, g, config); err == nil {
			t.Errorf("%s: accepted, resumed: %v", tls.VersionName(version), state.DidResume)
		}
	}
}

// Without a cache and without tickets nothing is resumed.
func TestNoSessions(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: sessionHosts(t) + headgatetest.Config("ssl-session-cache: false")})
	made := &wallet{}
	visit(t, g, tls.VersionTLS13, "plain.test", made)
	if visit(t, g, tls.VersionTLS13, "plain.test", made) {
		t.Error("a session was resumed")
	}
}
