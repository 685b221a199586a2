package link

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"
)

func certificateWith(t testing.TB, name string, uris ...string) *x509.Certificate {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			t.Skip(err)
		}
		c.URIs = append(c.URIs, uri)
	}
	return c
}

func TestIdentityOf(t *testing.T) {
	const all = "spiffe://headgate/edges"
	for _, c := range []struct {
		name string
		uris []string
		want Identity
		err  string
	}{
		{name: "edge-1", uris: []string{all}, want: Identity{"", "edge-1", ""}},
		{name: "edge.a-1", uris: []string{all + "/a-1"}, want: Identity{"a-1", "edge.a-1", ""}},
		{name: "edge", err: "0 URIs"},
		{name: "edge", uris: []string{all, all}, err: "2 URIs"},
		{name: "edge", uris: []string{all + "/"}, err: "the URI"},
		{name: "edge", uris: []string{all + "s"}, err: "the URI"},
		{name: "edge", uris: []string{all + "?a"}, err: "the URI"},
		{name: "edge", uris: []string{"spiffe://headgate"}, err: "the URI"},
		{name: "edge", uris: []string{"https://headgate/edges"}, err: "the URI"},
		{name: "edge", uris: []string{"spiffe://other/edges"}, err: "the URI"},
		{name: "edge", uris: []string{"spiffe://a@headgate/edges"}, err: "the URI"},
		{name: "edge", uris: []string{"spiffe://headgate:1/edges"}, err: "the URI"},
		{name: "edge", uris: []string{all + "/a/b"}, err: "the group"},
		{name: "edge", uris: []string{all + "/A"}, err: "the group"},
		{name: "edge", uris: []string{all + "/%61"}, err: "the group"},
		{name: "edge", uris: []string{all + "/-a"}, err: "the group"},
		{name: "edge", uris: []string{all + "/a-"}, err: "the group"},
		{name: "edge", uris: []string{all + "/" + strings.Repeat("a", 64)}, err: "the group"},
		{name: "", uris: []string{all}, err: "the name"},
		{name: "a\nb", uris: []string{all}, err: "the name"},
		{name: "a..b", uris: []string{all}, err: "the name"},
		{name: strings.Repeat("a", 254), uris: []string{all}, err: "the name"},
	} {
		got, err := IdentityOf(certificateWith(t, c.name, c.uris...))
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q %q: got %v, %v", c.name, c.uris, got, err)
		}
	}
}

// TestAccount: an organization that others wrote is none, and the certificate is that of an edge.
func TestAccount(t *testing.T) {
	for _, c := range []struct {
		organization []string
		want         string
	}{
		{nil, ""},
		{[]string{"own/headgate-edge"}, "own/headgate-edge"},
		{[]string{"own/a.b"}, "own/a.b"},
		{[]string{"own/a", "own/b"}, ""},
		{[]string{"Example Inc."}, ""},
		{[]string{"own"}, ""},
		{[]string{"/edge"}, ""},
		{[]string{"own/"}, ""},
		{[]string{"a.b/edge"}, ""},
		{[]string{"own/a/b"}, ""},
		{[]string{strings.Repeat("a", 64) + "/edge"}, ""},
		{[]string{"own/" + strings.Repeat("a", 254)}, ""},
	} {
		certificate := certificateWith(t, "edge", "spiffe://headgate/edges")
		certificate.Subject.Organization = c.organization
		if i, err := IdentityOf(certificate); err != nil || i.Account != c.want {
			t.Errorf("%q: got %q, %v", c.organization, i.Account, err)
		}
	}
}

// FuzzIdentityOf: what is taken is written in the same way, and what is not has no group.
func FuzzIdentityOf(f *testing.F) {
	f.Add("edge", "spiffe://headgate/edges", "")
	f.Add("edge-1.a", "spiffe://headgate/edges/a", "own/headgate-edge")
	f.Add("", "spiffe://headgate/edges/%2e%2e", "own/")
	f.Add("edge", "spiffe://headgate/edges/a#", "/")
	f.Fuzz(func(t *testing.T, name, uri, organization string) {
		c := certificateWith(t, name, uri)
		c.Subject.Organization = []string{organization}
		i, err := IdentityOf(c)
		if err != nil {
			if i != (Identity{}) {
				t.Errorf("%q %q: got %v with %v", name, uri, i, err)
			}
			return
		}
		if i.URI() != c.URIs[0].String() || i.Name != name || strings.Contains(i.Group, "/") || i.Account != "" && i.Account != organization {
			t.Errorf("%q %q: got %v, whose URI is %q", name, uri, i, i.URI())
		}
	})
}
