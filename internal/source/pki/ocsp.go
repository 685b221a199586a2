package pki

import (
	"cmp"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/guard"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/follow"
)

const (
	// minPause and maxPause bound the time between two responses.
	minPause = time.Minute
	maxPause = 12 * time.Hour
)

// OCSPResponses fetches OCSP responses.
type OCSPResponses struct {
	follow.Source[string]
	settings Settings
	client   *http.Client
}

// NewOCSPResponses makes a source without subscriptions.
func NewOCSPResponses(settings Settings) *OCSPResponses {
	return &OCSPResponses{follow.NewSource[string]("pki", atOnce, settings.Log), settings, newClient(settings.AllowLocal)}
}

// Subscribe adds certificates to fetch responses for, and removes others by their
// names. Nothing is delivered for a certificate without a responder, unless it
// requires a response.
func (s *OCSPResponses) Subscribe(added []source.Subject, removed []string) {
	names, subjects := make([]string, len(added)), make(map[string]source.Subject, len(added))
	for i, subject := range added {
		names[i], subjects[subject.Name] = subject.Name, subject
	}
	s.Source.Subscribe(names, removed, func(name string) follow.Job {
		return &ocspJob{client: s.client, minPause: cmp.Or(s.settings.MinPause, minPause), subject: subjects[name], now: time.Now}
	})
}

// An ocspJob fetches the responses for one certificate.
type ocspJob struct {
	client   *http.Client
	minPause time.Duration
	subject  source.Subject
	now      func() time.Time

	// newest is the response that is served, nil if there is none.
	newest   *answer
	failures int
}

// Owner is the namespace of the Secret.
func (j *ocspJob) Owner() string {
	namespace, _, _ := strings.Cut(j.subject.Secret, "/")
	return namespace
}

// Fetch sends a request to the responder.
func (j *ocspJob) Fetch(ctx context.Context) follow.Answer {
	about, err := readSubject(j.subject.Chain)
	if err != nil {
		return follow.Answer{Object: j.object(err.Error()), Err: err}
	}
	if about == nil {
		return follow.Answer{}
	}
	answered, err := j.fetch(ctx, about)
	now := j.now()
	if err == nil {
		j.failures = 0
		// A cache between may have an older one.
		if j.newest == nil || !answered.from.Before(j.newest.from) {
			j.newest = answered
		}
		return follow.Answer{Object: j.object(""), Pause: max(j.newest.due(now), j.minPause)}
	}
	j.failures++
	problem := "the OCSP responder does not answer"
	refused, answers := errors.AsType[*refusal](err)
	if answers {
		problem = refused.reason
	}
	if answers && refused.revoked || j.newest != nil && !j.newest.until.After(now) {
		j.newest = nil
	}
	pause := max(backoff(j.failures), j.minPause)
	if j.newest != nil {
		// Try again when it expires.
		pause = min(pause, j.newest.until.Sub(now))
	}
	return follow.Answer{Object: j.object(problem), Pause: pause, Err: err}
}

// object is the object to deliver.
func (j *ocspJob) object(problem string) metav1.Object {
	response := &source.OCSPResponse{ObjectMeta: metav1.ObjectMeta{Name: j.subject.Name}, Secret: j.subject.Secret, Problem: problem}
	if j.newest != nil {
		response.Response, response.Until = j.newest.raw, j.newest.until
	}
	return response
}

// fetch sends the request as a GET.
func (j *ocspJob) fetch(ctx context.Context, about *subject) (*answer, error) {
	question, err := ocsp.CreateRequest(about.leaf, about.issuer, nil)
	if err != nil {
		return nil, err
	}
	at := strings.TrimSuffix(about.responder, "/") + "/" + url.QueryEscape(base64.StdEncoding.EncodeToString(question))
	body, err := get(ctx, j.client, at)
	if err != nil {
		return nil, err
	}
	return readAnswer(body, about, j.now())
}

// A subject is a certificate with its issuer and its responder.
type subject struct {
	leaf, issuer *x509.Certificate
	responder    string
}

// tlsFeature is the extension of RFC 7633.
var tlsFeature = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}

// readSubject parses a chain. It returns nil for a certificate that has no
// responder and requires no response.
func readSubject(chain []byte) (*subject, error) {
	var certificates [2]*x509.Certificate
	for i := range certificates {
		var block *pem.Block
		if block, chain = pem.Decode(chain); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate can't be read")
		}
		certificates[i] = certificate
	}
	about := subject{leaf: certificates[0], issuer: certificates[1]}
	if about.leaf == nil {
		return nil, nil
	}
	about.responder = plainURL(about.leaf.OCSPServer)
	switch {
	case about.responder == "" && requiresOCSPResponse(about.leaf):
		return nil, errors.New("the certificate requires an OCSP response, but names no responder with an http URL")
	case about.responder == "":
		return nil, nil
	}
	if about.issuer != nil {
		if err := guard.CheckKey(about.issuer.PublicKey); err != nil {
			return nil, fmt.Errorf("the certificate's issuer: %w", err)
		}
	}
	if about.issuer == nil || about.leaf.CheckSignatureFrom(about.issuer) != nil {
		return nil, errors.New("the certificate of the issuer does not follow it in the chain")
	}
	return &about, nil
}

func requiresOCSPResponse(c *x509.Certificate) bool {
	return slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(tlsFeature) })
}
