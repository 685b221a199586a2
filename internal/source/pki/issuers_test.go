package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// serve answers paths with texts. "/to?URL" leads to a URL, and "/hops/N" in N
// steps to "/x".
func serve(t *testing.T, pages map[string][]byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to" {
			http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
			return
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/hops/")); err == nil {
			next := "/x"
			if n > 1 {
				next = "/hops/" + strconv.Itoa(n-1)
			}
			http.Redirect(w, r, next, http.StatusFound)
			return
		}
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(page)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestIssuers: a chain is followed up to the root.
func TestIssuers(t *testing.T) {
	authority := pkitest.New(t)
	pages := map[string][]byte{
		"/pem": []byte("-----\n" + pkitest.PEM(authority.Intermediate)), "/rubbish": []byte("rubbish"), "/empty": nil,
		"/long": append(bytes.Clone(authority.Intermediate.Raw), make([]byte, maxBytes)...),
	}
	url := serve(t, pages)
	// A certificate that names itself as its issuer's.
	circle, key := authority.Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "circle"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	turning, _ := authority.Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "circle's"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		IssuingCertificateURL: []string{url + "/turning"},
	}, circle, key)
	pages["/turning"] = turning.Raw
	pages["/slow"] = authority.SignKey(pkitest.LongKey(t), &x509.Certificate{
		Subject: pkix.Name{CommonName: "slow"}, IsCA: true, BasicConstraintsValid: true,
	}, circle, key).Raw
	for path, c := range map[string]struct {
		want    int
		problem bool
	}{
		authority.URL + "/intermediate": {2, false}, authority.URL + "/root": {1, false}, url + "/pem": {2, false},
		url + "/rubbish": {0, true}, url + "/empty": {0, true}, url + "/long": {0, true}, url + "/missing": {0, true}, url + "/slow": {0, true},
		url + "/to?/pem": {2, false}, url + "/turning": {1, false}, "http://127.0.0.1:1/": {0, true},
	} {
		job := &issuersJob{client: newClient(true), url: path}
		object, pause, _ := fetch(t, job)
		got := object.(*source.Issuers)
		if len(got.Chain) != c.want || (got.Problem != "") != c.problem || pause <= 0 || got.Name != path {
			t.Errorf("%s: %d certificates, problem %q, again in %v", path, len(got.Chain), got.Problem, pause)
		}
	}
}

// TestIssuersStay: what was fetched stays when it can't be fetched again.
func TestIssuersStay(t *testing.T) {
	authority := pkitest.New(t)
	pages := map[string][]byte{"/x": authority.Intermediate.Raw}
	job := &issuersJob{client: newClient(true), url: serve(t, pages) + "/x"}
	for _, page := range [][]byte{authority.Intermediate.Raw, []byte("rubbish"), nil} {
		pages["/x"] = page
		object, pause, err := fetch(t, job)
		if got := object.(*source.Issuers); len(got.Chain) != 2 || got.Problem != "" {
			t.Errorf("%q: %d certificates, problem %q", page, len(got.Chain), got.Problem)
		}
		if (err == nil) != (pause == issuersLast) {
			t.Errorf("again in %v, error %v", pause, err)
		}
	}
}

// TestLocalAddresses: no URL leads to this machine, in no notation, and neither
// by a redirect nor by a DNS name.
func TestLocalAddresses(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	client := newClient(false)
	for _, host := range []string{"127.0.0.1", "127.1.2.3", "localhost", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "169.254.169.254", "[fe80::1%25lo]", "[fd00:ec2::254]"} {
		_, err := get(t.Context(), client, "http://"+host+":"+port+"/")
		if !errors.Is(err, errLocal) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if asked > 0 {
		t.Errorf("%d requests came through", asked)
	}
}

// TestClient: redirects are few and of http, and nothing waits for long.
func TestClient(t *testing.T) {
	client := newClient(true)
	home := serve(t, map[string][]byte{"/x": []byte("x")})
	for path, want := range map[string]string{
		"/hops/1": "", "/hops/3": "", "/hops/4": "more than 3 redirects",
		"/to?https://127.0.0.1/": "only http URLs", "/to?file:///etc/passwd": "only http URLs", "/to?ftp://127.0.0.1/": "only http URLs",
		"/to?http://user@127.0.0.1/": "only http URLs",
	} {
		_, err := get(t.Context(), client, home+path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for text, want := range map[string]bool{
		"http://a.test/x": true, "http://10.0.0.1:8080": true, "https://a.test": false, "ldap://a.test": false, "http://": false, "": false,
		"http://u:p@a.test/": false, "//a.test": false, "http://a.test/\n": false, "http://a.test/" + strings.Repeat("x", maxURL): false,
	} {
		if (plainURL([]string{text}) != "") != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hangs.Close()
	client.Timeout = 50 * time.Millisecond
	var timeout *url.Error
	if _, err := get(t.Context(), client, hangs.URL); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a server that is silent: %v", err)
	}
}
