package clientcert_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// A kept connection sends one HTTP/1 request after the other, until the server closes it.
type kept struct {
	*tls.Conn
	t      *testing.T
	reader *bufio.Reader
}

func keep(t *testing.T, g *headgatetest.Instance, config *tls.Config) *kept {
	t.Helper()
	c := tls.Client(headgatetest.Dial(t, g.HTTPS), config)
	t.Cleanup(func() { _ = c.Close() })
	return &kept{c, t, bufio.NewReader(c)}
}

// ask returns the status, and whether the server has closed the connection behind it.
func (k *kept) ask(host string) (status int, closed bool) {
	k.t.Helper()
	return k.askPath(host, "/")
}

func (k *kept) askPath(host, path string) (status int, closed bool) {
	k.t.Helper()
	if err := k.SetDeadline(time.Now().Add(headgatetest.Timeout)); err != nil {
		k.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(k, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host); err != nil {
		k.t.Fatal(err)
	}
	answer, err := http.ReadResponse(k.reader, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		k.t.Fatal(err)
	}
	if !answer.Close {
		return answer.StatusCode, false
	}
	if _, err := k.reader.ReadByte(); !errors.Is(err, io.EOF) {
		k.t.Errorf("the answer says that the connection ends: %v", err)
	}
	return answer.StatusCode, true
}

// A request is checked by what its host wants when it comes, however old the connection is.
func TestChangesReachKeptConnections(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	good, second := ca.issue("good"), ca.issue("second")
	sub := ca.below("sub")
	deep := sub.issue("deep", sub)
	subSub := sub.below("sub-sub")
	deeper := subSub.issue("deeper", subSub, sub)
	with := func(annotations ...string) string {
		return secured("web", "web.test", append(annotations, "auth-tls-secret: default/ca")...)
	}
	plain := secured("web", "web.test")
	guarded := with()
	optional := with("auth-tls-verify-client: optional")
	trusting := caSecret("ca", "", ca)
	for name, c := range map[string]struct {
		client        *tls.Certificate
		before, after string
		// removed are objects that the change removes.
		removed       string
		first, second int
		// closes is set where HTTP/1 connections end.
		closes bool
	}{
		"another CA":        {good, trusting + guarded, caSecret("ca", "", other), "", 200, 400, true},
		"one more CA":       {good, trusting + guarded, caSecret("ca", "", other, ca), "", 200, 200, false},
		"the client's CA":   {good, caSecret("ca", "", other) + guarded, caSecret("ca", "", ca), "", 400, 200, true},
		"revoked":           {good, trusting + guarded, caSecret("ca", ca.revoke(good), ca), "", 200, 400, true},
		"another is":        {good, trusting + guarded, caSecret("ca", ca.revoke(second), ca), "", 200, 200, false},
		"a chain":           {deep, trusting + guarded, caSecret("ca", "", ca, other), "", 200, 200, false},
		"a chain, revoked":  {deep, trusting + guarded, caSecret("ca", ca.revoke(deep)+sub.revoke(deep), ca), "", 200, 400, true},
		"no longer needed":  {nil, trusting + optional, guarded, "", 200, 400, true},
		"needed":            {nil, trusting + guarded, optional, "", 400, 200, true},
		"guarded":           {good, trusting + plain, guarded, "", 200, 421, true},
		"guarded from off":  {good, trusting + with("auth-tls-verify-client: off"), guarded, "", 200, 421, true},
		"open":              {good, trusting + guarded, plain, "", 200, 200, false},
		"the Secret is bad": {good, trusting + guarded, caSecret("ca", "rubbish", ca), "", 200, 403, false},
		"no Secret":         {good, trusting + guarded, "", trusting, 200, 403, false},
		"less depth":        {deeper, trusting + with("auth-tls-verify-depth: 2"), guarded, "", 200, 400, true},
		"more depth":        {deeper, trusting + guarded, with("auth-tls-verify-depth: 2"), "", 400, 200, true},
		"an error page":     {nil, trusting + guarded, with("auth-tls-error-page: https://help.test/"), "", 400, 302, true},
		"passed":            {good, trusting + guarded, with("auth-tls-pass-certificate-to-upstream: true"), "", 200, 200, false},
		"another subject":   {good, trusting + guarded, with("auth-tls-match-cn: CN=second"), "", 200, 403, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Another host has the phase of the client hello there from the start.
			g := start(t, c.before+secured("phase", "phase.test", "ssl-prefer-server-ciphers: true"))
			one, two := keep(t, g, config("web.test", c.client)), newClient(t, g, true, "web.test", c.client)
			three := two
			if g.HTTP3() {
				g.ApplyReloading(headgatetest.Config("use-http3: true"))
				one, two = keep(t, g, config("web.test", c.client)), newClient(t, g, true, "web.test", c.client)
				three = newHTTP3Client(t, g, "web.test", c.client)
			}
			status, closed := one.ask("web.test")
			if want := c.first == 400; status != c.first || closed != want {
				t.Errorf("HTTP/1.1 before: status %d, closed %v; want %d, %v", status, closed, c.first, want)
			}
			if closed {
				one = nil
			}
			two.ask("", "/").WantStatus(t, c.first)
			three.ask("", "/").WantStatus(t, c.first)
			if c.after != "" {
				g.Apply(c.after)
			}
			if c.removed != "" {
				g.Delete(c.removed)
			}
			if one != nil {
				if status, closed := one.ask("web.test"); status != c.second || closed != c.closes {
					t.Errorf("HTTP/1.1 after: status %d, closed %v; want %d, %v", status, closed, c.second, c.closes)
				}
			}
			for _, client := range []client{two, three} {
				r := client.ask("", "/").WantStatus(t, c.second)
				if name == "passed" && !strings.HasSuffix(seen(r), pkitest.PEM(good.Leaf)) {
					t.Errorf("%s: the backend gets %q", r.Proto, seen(r))
				}
				if c.second == 200 && name != "open" && c.client != nil && seen(r)[:8] != "SUCCESS|" {
					t.Errorf("%s: the backend gets %q", r.Proto, seen(r))
				}
			}
			if want := max(0, g.Value(g.Metrics.Reloads)); !g.HTTP3() && want != 0 {
				t.Errorf("%d reloads", want)
			}
		})
	}
}

// What was verified for one host counts at another one only if that verifies the same.
func TestOtherHostsOverAConnection(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	good := ca.issue("good")
	// No error page hides from a client that it must make another connection.
	g := start(t, headgatetest.Config("custom-http-errors: 421")+caSecret("ca", "", ca)+caSecret("copy", "", ca)+caSecret("other", "", other)+
		secured("one", "one.test", "auth-tls-secret: default/ca")+secured("same", "same.test", "auth-tls-secret: default/copy")+
		secured("optional", "optional.test", "auth-tls-secret: default/ca", "auth-tls-verify-client: optional")+
		secured("two", "two.test", "auth-tls-secret: default/other")+secured("deep", "deep.test", "auth-tls-secret: default/ca", "auth-tls-verify-depth: 2")+
		secured("two-optional", "two-optional.test", "auth-tls-secret: default/other", "auth-tls-verify-client: optional")+
		secured("off", "off.test", "auth-tls-secret: default/ca", "auth-tls-verify-client: off")+
		secured("off-match", "off-match.test", "auth-tls-secret: default/ca", "auth-tls-verify-client: off", "auth-tls-match-cn: CN=good")+
		secured("missing", "missing.test", "auth-tls-secret: default/missing")+secured("plain", "plain.test")+secured("weak", "weak.test", "ssl-prefer-server-ciphers: true"))
	for _, c := range []struct {
		name, host string
		want       int
		seen       string
	}{
		{"one.test", "one.test", 200, "SUCCESS|CN=good,O=Tests|CN=ca"},
		{"one.test", "same.test", 200, "SUCCESS|CN=good,O=Tests|CN=ca"},
		{"one.test", "optional.test", 200, "SUCCESS|CN=good,O=Tests|CN=ca"},
		{"one.test", "two.test", 421, "no backend"},
		{"one.test", "two-optional.test", 421, "no backend"},
		{"one.test", "deep.test", 421, "no backend"},
		{"one.test", "missing.test", 403, "no backend"},
		{"one.test", "plain.test", 200, "||"},
		{"one.test", "off.test", 200, "NONE||"},
		{"one.test", "off-match.test", 403, "no backend"},
		{"plain.test", "one.test", 421, "no backend"},
		{"plain.test", "off.test", 200, "NONE||"},
		{"weak.test", "one.test", 421, "no backend"},
		{"off.test", "one.test", 421, "no backend"},
		{"two.test", "one.test", 421, "no backend"},
		{"two-optional.test", "one.test", 421, "no backend"},
		{"unknown.test", "one.test", 421, "no backend"},
	} {
		for _, http2 := range []bool{false, true} {
			r := newClient(t, g, http2, c.name, good).ask(c.host, "/").WantStatus(t, c.want)
			if got := seen(r); r.Status != c.want || got != c.seen {
				t.Errorf("%s over a connection for %s, %s: status %d, the backend gets %q; want %d, %q", c.host, c.name, r.Proto, r.Status, got, c.want, c.seen)
			}
		}
		k := keep(t, g, config(c.name, good))
		if status, closed := k.ask(c.host); status != c.want || closed != (c.want == 421) {
			t.Errorf("%s over a connection for %s: status %d, closed %v", c.host, c.name, status, closed)
		}
	}
}

// The same where the address of a client passes through a location of its own.
func TestOtherHostsBehindProxies(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	good := ca.issue("good")
	g := start(t, headgatetest.Config("enable-real-ip: true", "forwarded-for-header: cf-connecting-ip")+caSecret("ca", "", ca)+caSecret("other", "", other)+
		secured("one", "one.test", "auth-tls-secret: default/ca")+secured("two", "two.test", "auth-tls-secret: default/other")+secured("plain", "plain.test"))
	for _, c := range []struct {
		name, host string
		want       int
	}{{"one.test", "one.test", 200}, {"one.test", "two.test", 421}, {"plain.test", "one.test", 421}} {
		newClient(t, g, true, c.name, good).ask(c.host, "/").WantStatus(t, c.want)
		k := keep(t, g, config(c.name, good))
		if status, closed := k.ask(c.host); status != c.want || closed != (c.want == 421) {
			t.Errorf("%s over a connection for %s: status %d, closed %v", c.host, c.name, status, closed)
		}
	}
}

// A list that Go can read and the TLS library can't must not let pass what it revokes.
func TestListsOfOtherForms(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	revoked, second := ca.issue("revoked"), ca.issue("second")
	list := odd(t, ca.revoke(revoked))
	for _, mode := range []string{"on", "optional", "optional_no_ca"} {
		host := secured("web", "web.test", "auth-tls-secret: default/ca", "auth-tls-verify-client: "+mode)
		g := start(t, host+caSecret("ca", list, ca)+secured("both", "both.test", "auth-tls-secret: default/both", "auth-tls-verify-client: "+mode)+
			caSecret("both", ca.revoke(second)+list, ca))
		for _, name := range []string{"web.test", "both.test"} {
			c := newClient(t, g, false, name, revoked)
			if r, err := g.Try(c.Client, headgatetest.Request{Scheme: "https", Host: name}); err == nil {
				t.Errorf("%s, %s: a handshake passes, and gets status %d", mode, name, r.Status)
			}
		}
		g.Apply(caSecret("ca", "", ca))
		kept := newClient(t, g, true, "web.test", revoked)
		kept.ask("", "/").WantStatus(t, 200)
		g.Apply(caSecret("ca", list, ca))
		kept.ask("", "/").WantStatus(t, 500)
	}
}

// odd makes a list that has one element more than it may have.
func odd(t *testing.T, list string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(list))
	var parts []asn1.RawValue
	if _, err := asn1.Unmarshal(block.Bytes, &parts); err != nil {
		t.Fatal(err)
	}
	parts[0].Bytes, parts[0].FullBytes = append(slices.Clone(parts[0].Bytes), asn1.NullBytes...), nil
	whole, err := asn1.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParseRevocationList(whole); err != nil {
		t.Fatal("Go takes no such list any more: the test needs another one")
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: whole}))
}

// A certificate that is verified again, since the Secret has changed, gets the result of a new
// handshake: what is wrong with it beside its CA counts.
func TestExpiredOfOthers(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	sub := other.below("sub")
	g := start(t, caSecret("ca", "", ca)+secured("any", "any.test", "auth-tls-secret: default/ca", "auth-tls-verify-client: optional_no_ca"))
	for name, c := range map[string]struct {
		client *tls.Certificate
		want   int
	}{
		"expired":        {other.sign(&x509.Certificate{NotAfter: time.Now().Add(-time.Minute)}), 400},
		"behind another": {sub.sign(&x509.Certificate{NotAfter: time.Now().Add(-time.Minute)}, sub), 400},
		"valid":          {other.issue("valid"), 200},
	} {
		g.Apply(caSecret("ca", "", ca))
		kept := newClient(t, g, true, "any.test", c.client)
		before := kept.ask("", "/").WantStatus(t, c.want)
		g.Apply(caSecret("ca", "", ca, newAuthority(t, "third")))
		after := kept.ask("", "/").WantStatus(t, c.want)
		if seen(before) != seen(after) {
			t.Errorf("%s: the backend gets %q, before %q", name, seen(after), seen(before))
		}
	}
}

// A wallet keeps one session, for all names.
type wallet struct{ session *tls.ClientSessionState }

func (w *wallet) Put(_ string, s *tls.ClientSessionState) {
	if s != nil {
		w.session = s
	}
}

func (w *wallet) Get(string) (*tls.ClientSessionState, bool) { return w.session, w.session != nil }

// A session that is resumed remembers who the client was, for its own host and the same
// verification alone.
func TestResumption(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	good, stranger := ca.issue("good"), other.issue("stranger")
	from := []string{"auth-tls-secret: default/ca", "auth-tls-verify-client: optional_no_ca"}
	for _, tickets := range []string{"false", "true"} {
		g := start(t, caSecret("ca", "", ca)+caSecret("other", "", other)+headgatetest.Config("ssl-session-tickets: "+tickets)+
			secured("one", "one.test", from...)+secured("same", "same.test", from...)+
			secured("two", "two.test", "auth-tls-secret: default/other")+secured("plain", "plain.test"))
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if version == tls.VersionTLS12 && tickets == "false" {
				continue // Go has no session ids.
			}
			visit := func(name string, certificate *tls.Certificate, w *wallet) (headgatetest.Response, bool) {
				c := newClient(t, g, false, name, certificate)
				of := c.Transport.(*http.Transport).TLSClientConfig
				of.MinVersion, of.MaxVersion, of.ClientSessionCache = version, version, w
				r := c.ask("", "/")
				c.CloseIdleConnections()
				return r, r.TLS.DidResume
			}
			for name, client := range map[string]*tls.Certificate{"good": good, "stranger": stranger, "none": nil} {
				made := &wallet{}
				first, _ := visit("one.test", client, made)
				if made.session == nil {
					t.Fatal("no session")
				}
				session := made.session
				// The session alone says who the client is.
				again, resumed := visit("one.test", nil, &wallet{session})
				if !resumed || seen(again) != seen(first) || again.Status != 200 {
					t.Errorf("%s, %s: resumed %v, status %d, the backend gets %q, before %q", name, tls.VersionName(version), resumed, again.Status, seen(again), seen(first))
				}
				for _, host := range []string{"same.test", "two.test", "plain.test"} {
					r, resumed := visit(host, nil, &wallet{session})
					if want := map[string]string{"same.test": "NONE||", "two.test": "no backend", "plain.test": "||"}[host]; resumed || seen(r) != want {
						t.Errorf("%s, %s, resumed at %s: %v, the backend gets %q, want %q", name, tls.VersionName(version), host, resumed, seen(r), want)
					}
				}
				plain := &wallet{}
				visit("plain.test", client, plain)
				if r, resumed := visit("two.test", nil, plain); resumed || r.Status != 400 {
					t.Errorf("%s: a session of a host without verification: resumed %v, status %d", tls.VersionName(version), resumed, r.Status)
				}
				// Nor does it outlive the verification.
				g.Apply(caSecret("ca", "", other))
				if r, resumed := visit("one.test", nil, &wallet{session}); resumed || seen(r) != "NONE||" {
					t.Errorf("%s, %s: after a change: resumed %v, the backend gets %q", name, tls.VersionName(version), resumed, seen(r))
				}
				g.Apply(caSecret("ca", "", ca))
			}
		}
	}
}

// There may be more authorities than a worker keeps, and each host has its own.
func TestManyAuthorities(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	const n = 1000
	first := newAuthority(t, "0")
	all := []*authority{first}
	for i := 1; i < n; i++ {
		a := *first
		a.root, a.key = first.signer.Sign(issuer(fmt.Sprint(i)), nil, nil)
		all = append(all, &a)
	}
	manifests := caSecret("all", "", all...) + secured("all", "all.test", "auth-tls-secret: default/all")
	for i, a := range all {
		manifests += caSecret(fmt.Sprint("ca", i), "", a) + secured(fmt.Sprint("h", i), fmt.Sprintf("h%d.test", i), fmt.Sprint("auth-tls-secret: default/ca", i))
	}
	g := start(t, manifests)
	for i, a := range all {
		name := fmt.Sprintf("h%d.test", i)
		good := a.issue("good")
		newClient(t, g, true, name, good).ask("", "/").WantStatus(t, 200)
		if i%50 == 0 {
			newClient(t, g, true, name, all[(i+1)%n].issue("bad")).ask("", "/").WantStatus(t, 400)
			newClient(t, g, true, "all.test", good).ask("", "/").WantStatus(t, 200)
		}
	}
}
