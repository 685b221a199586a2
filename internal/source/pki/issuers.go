package pki

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/guard"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/follow"
)

const (
	// maxIssuers bounds a chain that is fetched.
	maxIssuers = 4
	// issuersLast is how long fetched certificates are used before they are
	// fetched again.
	issuersLast = 24 * time.Hour
)

// Issuers fetches issuers' certificates.
type Issuers struct {
	follow.Source[string]
	client *http.Client
}

// NewIssuers makes a source without subscriptions.
func NewIssuers(settings Settings) *Issuers {
	return &Issuers{follow.NewSource[string]("pki", atOnce, settings.Log), newClient(settings.AllowLocal)}
}

// Subscribe adds and removes URLs to fetch. The channel is closed when those of
// the added ones are delivered.
func (i *Issuers) Subscribe(added, removed []string) (delivered <-chan struct{}) {
	return i.Source.Subscribe(added, removed, func(url string) follow.Job { return &issuersJob{client: i.client, url: url} })
}

// An issuersJob fetches the certificates at one URL.
type issuersJob struct {
	client   *http.Client
	url      string
	chain    [][]byte
	failures int
}

// Owner is the URL's host: several namespaces may name one URL.
func (j *issuersJob) Owner() string {
	u, err := url.Parse(j.url)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Fetch fetches the certificates.
func (j *issuersJob) Fetch(ctx context.Context) follow.Answer {
	chain, err := j.fetch(ctx)
	// A part of a chain does not replace a chain that was complete.
	if err == nil || len(j.chain) == 0 {
		j.chain = chain
	}
	object := &source.Issuers{ObjectMeta: metav1.ObjectMeta{Name: j.url}, Chain: j.chain}
	if err == nil {
		j.failures = 0
		return follow.Answer{Object: object, Pause: issuersLast}
	}
	j.failures++
	if len(j.chain) == 0 {
		object.Problem = "no certificate could be fetched"
	}
	return follow.Answer{Object: object, Pause: backoff(j.failures), Err: err}
}

// fetch follows the URLs from certificate to certificate up to the root, and
// returns as many as it gets.
func (j *issuersJob) fetch(ctx context.Context) (chain [][]byte, err error) {
	var child *x509.Certificate
	for url := j.url; url != "" && len(chain) < maxIssuers; {
		body, err := get(ctx, j.client, url)
		if err != nil {
			return chain, err
		}
		issuer, err := parseIssuer(body)
		if err != nil {
			return chain, err
		}
		if child != nil && child.CheckSignatureFrom(issuer) != nil {
			return chain, errors.New("the certificate at this URL did not sign the certificate that contains the URL")
		}
		chain = append(chain, issuer.Raw)
		if bytes.Equal(issuer.RawSubject, issuer.RawIssuer) {
			break
		}
		child, url = issuer, plainURL(issuer.IssuingCertificateURL)
	}
	return chain, nil
}

// parseIssuer parses a certificate in DER, as RFC 5280 requires, or in PEM. Its
// key must be one that guard.CheckKey allows.
func parseIssuer(body []byte) (*x509.Certificate, error) {
	if block, _ := pem.Decode(body); block != nil && block.Type == "CERTIFICATE" {
		body = block.Bytes
	}
	issuer, err := x509.ParseCertificate(body)
	if err != nil {
		return nil, fmt.Errorf("neither a certificate in DER nor one in PEM: %w", err)
	}
	if err := guard.CheckKey(issuer.PublicKey); err != nil {
		return nil, fmt.Errorf("an issuer's certificate: %w", err)
	}
	return issuer, nil
}
