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

	"github.com/headgate/headgate/internal/source"
)

const (
	// mostIssuers bounds a chain that is fetched.
	mostIssuers = 4
	// issuersLast is how long fetched certificates are used before they are
	// fetched again.
	issuersLast = 24 * time.Hour
)

// Issuers fetches issuers' certificates.
type Issuers struct {
	*follower
	client *http.Client
}

// NewIssuers makes a source that wants nothing yet.
func NewIssuers(settings Settings) *Issuers {
	return &Issuers{newFollower(settings.Log), newClient(settings.AllowLocal)}
}

// Want says which URLs are to be fetched from now on, and which no longer.
func (i *Issuers) Want(added, removed []string) {
	quests := make(map[string]quest, len(added))
	for _, url := range added {
		quests[url] = &issuersQuest{client: i.client, url: url}
	}
	i.want(quests, removed)
}

// An issuersQuest is the search for the certificates at one URL.
type issuersQuest struct {
	client   *http.Client
	url      string
	chain    [][]byte
	failures int
}

// owner is the URL's host: several namespaces may name one URL.
func (q *issuersQuest) owner() string {
	u, err := url.Parse(q.url)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

func (q *issuersQuest) ask(ctx context.Context) (metav1.Object, time.Duration, error) {
	chain, err := q.fetch(ctx)
	object := &source.Issuers{ObjectMeta: metav1.ObjectMeta{Name: q.url}}
	// What could be had before is not given up for a part of it.
	if err == nil || len(q.chain) == 0 {
		q.chain = chain
	}
	object.Chain = q.chain
	if err != nil {
		q.failures++
		if len(q.chain) == 0 {
			object.Problem = "there is no certificate that could be fetched"
		}
		return object, backoff(q.failures), err
	}
	q.failures = 0
	return object, issuersLast, nil
}

// fetch follows the URLs from certificate to certificate up to the root, and
// returns as many as it gets.
func (q *issuersQuest) fetch(ctx context.Context) (chain [][]byte, err error) {
	var child *x509.Certificate
	for url := q.url; url != "" && len(chain) < mostIssuers; {
		body, err := get(ctx, q.client, url)
		if err != nil {
			return chain, err
		}
		issuer, err := parseIssuer(body)
		if err != nil {
			return chain, err
		}
		if child != nil && child.CheckSignatureFrom(issuer) != nil {
			return chain, errors.New("a certificate that did not sign the one that names it")
		}
		chain = append(chain, issuer.Raw)
		if bytes.Equal(issuer.RawSubject, issuer.RawIssuer) {
			break
		}
		child, url = issuer, issuerURL(issuer)
	}
	return chain, nil
}

// parseIssuer reads a certificate in DER, as RFC 5280 has it, or in PEM, whose
// key is one to verify with.
func parseIssuer(body []byte) (*x509.Certificate, error) {
	if block, _ := pem.Decode(body); block != nil && block.Type == "CERTIFICATE" {
		body = block.Bytes
	}
	issuer, err := x509.ParseCertificate(body)
	if err != nil {
		return nil, fmt.Errorf("neither a certificate in DER nor one in PEM: %w", err)
	}
	if err := source.CheckKey(issuer.PublicKey); err != nil {
		return nil, fmt.Errorf("an issuer's certificate: %w", err)
	}
	return issuer, nil
}

func issuerURL(c *x509.Certificate) string {
	for _, url := range c.IssuingCertificateURL {
		if plainURL(url) {
			return url
		}
	}
	return ""
}
