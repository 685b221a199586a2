package pki

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/follow"
	"github.com/headgate/headgate/internal/test/pkitest"
)

func fetch(t *testing.T, job follow.Job) (object metav1.Object, pause time.Duration, err error) {
	t.Helper()
	answer := job.Fetch(t.Context())
	return answer.Object, answer.Pause, answer.Err
}

func jobOf(chain string) *ocspJob {
	return &ocspJob{
		client: newClient(true), minPause: time.Millisecond, now: time.Now,
		subject: source.Subject{Name: "x", Chain: []byte(chain), Secret: "shop/tls"},
	}
}

// TestAnswers: only an answer that a client will take is delivered.
func TestAnswers(t *testing.T) {
	authority, stranger := pkitest.New(t), pkitest.New(t)
	pair := authority.Issue("a.test")
	delegate := func(usages ...x509.ExtKeyUsage) pkitest.Responder {
		return authority.SignedBy(authority.Delegate(usages...))
	}
	strangers := func(usages ...x509.ExtKeyUsage) pkitest.Responder {
		return authority.SignedBy(stranger.Delegate(usages...))
	}
	good := authority.Good(time.Hour)
	_, intermediate, key, _ := good(big.NewInt(1))
	long := pkitest.LongKey(t)
	slow := authority.SignKey(long, &x509.Certificate{
		Subject: pkix.Name{CommonName: "slow"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning},
	}, intermediate, key)
	const noAnswer, unusable, unsigned = "the OCSP responder does not answer", "the OCSP responder does not send a usable response",
		"the OCSP response is not signed by the certificate's issuer"
	for name, c := range map[string]struct {
		respond pkitest.Responder
		problem string
	}{
		"good":                                {good, ""},
		"without an end":                      {authority.Says(ocsp.Good, -time.Minute, 0), ""},
		"old without end":                     {authority.Says(ocsp.Good, -25*time.Hour, 0), "the OCSP response is expired"},
		"revoked":                             {authority.Says(ocsp.Revoked, 0, time.Hour), "the certificate is revoked"},
		"unknown":                             {authority.Says(ocsp.Unknown, 0, time.Hour), "the OCSP responder does not know the certificate"},
		"too old":                             {authority.Says(ocsp.Good, -2*time.Hour, -time.Hour), "the OCSP response is expired"},
		"too early":                           {authority.Says(ocsp.Good, time.Hour, 2*time.Hour), "the OCSP response is not valid yet"},
		"a clock ahead":                       {authority.Says(ocsp.Good, 2*time.Minute, 2*time.Hour), ""},
		"a delegate":                          {delegate(x509.ExtKeyUsageOCSPSigning), ""},
		"another certificate of the issuer's": {delegate(x509.ExtKeyUsageServerAuth), unsigned},
		"a delegate with a long key":          {authority.SignedBy(slow, long), unusable},
		"a stranger's delegate":               {strangers(x509.ExtKeyUsageOCSPSigning), unsigned},
		"the issuer itself, named":            {authority.SignedBy(intermediate, key), ""},
		"a stranger":                          {stranger.Good(time.Hour), unsigned},
		"500":                                 {pkitest.Fails(500), noAnswer},
		"on another certificate": {func(*big.Int) (ocsp.Response, *x509.Certificate, crypto.Signer, int) {
			return good(big.NewInt(7))
		}, unusable},
	} {
		t.Run(name, func(t *testing.T) {
			authority.Respond(c.respond)
			object, pause, err := fetch(t, jobOf(pair.Chain))
			response := object.(*source.OCSPResponse)
			if response.Problem != c.problem || (err == nil) != (c.problem == "") || (len(response.Response) > 0) != (c.problem == "") {
				t.Errorf("problem %q, error %v, %d bytes; want the problem %q", response.Problem, err, len(response.Response), c.problem)
			}
			if pause <= 0 || pause > maxPause+maxPause/4 || response.Name != "x" || response.Secret != "shop/tls" {
				t.Errorf("pause %v, %+v", pause, response)
			}
			if c.problem == "" && time.Until(response.Until) <= 0 {
				t.Errorf("until %v", response.Until)
			}
		})
	}
}

// TestSubjects: a certificate without a usable responder has a problem only if it needs a response.
func TestSubjects(t *testing.T) {
	authority, stranger := pkitest.New(t), pkitest.New(t)
	_, intermediate, key, _ := authority.Good(time.Hour)(big.NewInt(1))
	longKey := pkitest.LongKey(t)
	long := authority.SignKey(longKey, &x509.Certificate{
		Subject: pkix.Name{CommonName: "long"}, IsCA: true, BasicConstraintsValid: true,
	}, intermediate, key)
	longs := authority.SignKey(key, &x509.Certificate{OCSPServer: []string{authority.URL + "/ocsp"}}, long, longKey)
	silent := func(template *x509.Certificate) string { return authority.IssueAs(template, "a.test").Chain }
	for name, c := range map[string]struct{ chain, problem string }{
		"no responder":      {silent(&x509.Certificate{}), ""},
		"only over ldap":    {silent(&x509.Certificate{OCSPServer: []string{"ldap://x/y", "https://x/y"}}), ""},
		"empty":             {"", ""},
		"no issuer":         {authority.Issue("a.test").Certificate, "the certificate of the issuer does not follow it in the chain"},
		"another issuer":    {authority.Issue("a.test").Certificate + pkitest.PEM(stranger.Intermediate), "the certificate of the issuer does not follow it in the chain"},
		"the root, not the": {authority.Issue("a.test").Certificate + pkitest.PEM(authority.Root), "the certificate of the issuer does not follow it in the chain"},
		"an issuer with a long key": {pkitest.PEM(longs) + pkitest.PEM(long),
			"the certificate's issuer: the key is RSA with " + strconv.Itoa(longKey.N.BitLen()) +
				" bits: it must be RSA with up to 8192 bits, ECDSA on P-256, P-384 and P-521, and Ed25519"},
		"must-staple": {silent(&x509.Certificate{ExtraExtensions: []pkix.Extension{pkitest.RequireOCSPResponse()}}),
			"the certificate requires an OCSP response, but names no responder with an http URL"},
	} {
		object, pause, err := fetch(t, jobOf(c.chain))
		problem := ""
		if object != nil {
			problem = object.(*source.OCSPResponse).Problem
		}
		if problem != c.problem || (err == nil) != (c.problem == "") || pause != 0 || c.problem == "" && object != nil {
			t.Errorf("%s: %v, again in %v, error %v", name, object, pause, err)
		}
	}
	if n := authority.Asked(); n != 0 {
		t.Errorf("%d questions", n)
	}
}

// TestKeepsAnswer: the last response stays while it is valid, unless the
// responder says later that the certificate is revoked.
func TestKeepsAnswer(t *testing.T) {
	authority := pkitest.New(t)
	job := jobOf(authority.Issue("a.test").Chain)
	now := time.Now()
	job.now = func() time.Time { return now }
	step := func(about string, respond pkitest.Responder, holds bool, problem string) (pause time.Duration) {
		t.Helper()
		authority.Respond(respond)
		object, pause, _ := fetch(t, job)
		response := object.(*source.OCSPResponse)
		if (len(response.Response) > 0) != holds || response.Problem != problem {
			t.Errorf("%s: %d bytes, problem %q", about, len(response.Response), response.Problem)
		}
		return pause
	}
	const silent = "the OCSP responder does not answer"
	step("at first", pkitest.Fails(404), false, silent)
	if pause := step("an answer", authority.Good(10*time.Hour), true, ""); pause < 299*time.Minute || pause > 5*time.Hour {
		t.Errorf("asks again in %v, want half of the time", pause)
	}
	step("silence", pkitest.Fails(404), true, silent)
	newest := job.newest.from
	step("an older answer", authority.Says(ocsp.Good, -time.Hour, time.Hour), true, "")
	if !job.newest.from.Equal(newest) {
		t.Error("an older answer took the place of a newer one")
	}
	now = job.newest.until.Add(-time.Second)
	if pause := step("silence before the end", pkitest.Fails(404), true, silent); pause > time.Second {
		t.Errorf("the end is in a second, looks again in %v", pause)
	}
	now = job.newest.until
	step("silence at the end", pkitest.Fails(404), false, silent)
	now = time.Now()
	step("another answer", authority.Good(time.Hour), true, "")
	step("revoked", authority.Says(ocsp.Revoked, 0, time.Hour), false, "the certificate is revoked")
	var last time.Duration
	for range 20 {
		last = step("silence", pkitest.Fails(http.StatusTooManyRequests), false, silent)
	}
	if last < maxBackoff || last > maxBackoff+maxBackoff/4 {
		t.Errorf("after 20 failures asks again in %v", last)
	}
}

// TestWant: a response is delivered while its subscription lasts.
func TestWant(t *testing.T) {
	authority := pkitest.New(t)
	responses := NewOCSPResponses(Settings{AllowLocal: true, MinPause: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	changes := make(chan source.Change, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- responses.Run(ctx, func(_ context.Context, batch []source.Change) {
			for _, c := range batch {
				changes <- c
			}
		})
	}()
	next := func() source.Change {
		t.Helper()
		select {
		case c := <-changes:
			return c
		case <-time.After(10 * time.Second):
			t.Fatal("nothing came")
			return source.Change{}
		}
	}
	plain := authority.IssueAs(&x509.Certificate{}, "plain.test")
	responses.Subscribe([]source.Subject{
		{Name: "a", Chain: []byte(authority.Issue("a.test").Chain)}, {Name: "plain", Chain: []byte(plain.Chain)},
	}, nil)
	if c := next(); c.Deleted || c.Object.GetName() != "a" || len(c.Object.(*source.OCSPResponse).Response) == 0 {
		t.Errorf("%+v", c)
	}
	responses.Subscribe(nil, []string{"a", "plain", "unknown"})
	if c := next(); !c.Deleted || c.Object.GetName() != "a" {
		t.Errorf("%+v", c)
	}
	responses.Subscribe([]source.Subject{{Name: "gone", Chain: []byte(authority.Issue("a.test").Chain)}}, []string{"a"})
	responses.Subscribe([]source.Subject{{Name: "b", Chain: []byte(authority.Issue("a.test").Chain)}}, []string{"gone"})
	for {
		c := next()
		if c.Object.GetName() == "b" {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOwners: which jobs wait for each other.
func TestOwners(t *testing.T) {
	for _, c := range []struct {
		job  follow.Job
		want string
	}{
		{&ocspJob{subject: source.Subject{Secret: "shop/tls"}}, "shop"},
		{&ocspJob{}, ""},
		{&issuersJob{url: "http://CA.test:8080/x?y"}, "ca.test"},
		{&issuersJob{url: "http://%"}, ""},
	} {
		if got := c.job.Owner(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.job, got, c.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	authority := pkitest.New(f)
	about, err := readSubject([]byte(authority.Issue("a.test").Chain))
	if err != nil {
		f.Fatal(err)
	}
	for _, status := range []int{ocsp.Good, ocsp.Revoked, ocsp.Unknown} {
		template, signer, key, _ := authority.Says(status, 0, time.Hour)(about.leaf.SerialNumber)
		response, err := ocsp.CreateResponse(authority.Intermediate, signer, template, key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(response)
	}
	now := time.Now()
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, err := readAnswer(body, about, now)
		if err != nil {
			return
		}
		if !answer.until.After(now) || answer.due(now) <= 0 {
			t.Errorf("an answer until %v", answer.until)
		}
	})
}

func FuzzChain(f *testing.F) {
	authority := pkitest.New(f)
	pair := authority.Issue("a.test")
	f.Add([]byte(pair.Chain))
	f.Add([]byte(strings.Repeat(pair.Certificate, 3)))
	f.Add(authority.Root.Raw)
	f.Fuzz(func(t *testing.T, text []byte) {
		about, err := readSubject(text)
		if err == nil && about != nil && (about.leaf == nil || about.issuer == nil || plainURL([]string{about.responder}) == "") {
			t.Errorf("%+v", about)
		}
		if issuer, err := parseIssuer(text); err == nil && plainURL(issuer.IssuingCertificateURL) != "" && !bytes.Contains(issuer.Raw, []byte("http://")) {
			t.Errorf("the URL %q", plainURL(issuer.IssuingCertificateURL))
		}
	})
}
