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

	"github.com/headgate/headgate/internal/source"
)

const (
	// leastPause and mostPause bound the time between two answers.
	leastPause = time.Minute
	mostPause  = 12 * time.Hour
)

// Staples fetches OCSP answers.
type Staples struct {
	*follower
	settings Settings
	client   *http.Client
}

// NewStaples makes a source that wants nothing yet.
func NewStaples(settings Settings) *Staples {
	return &Staples{newFollower(settings.Log), settings, newClient(settings.AllowLocal)}
}

// Want says for which certificates answers are to be fetched from now on, and,
// by their names, for which no longer. Of a certificate that names no responder
// nothing is delivered, unless it says that it must not be shown without an
// answer.
func (s *Staples) Want(added []source.Subject, removed []string) {
	quests := make(map[string]quest, len(added))
	for _, subject := range added {
		quests[subject.Name] = &stapleQuest{
			client: s.client, least: cmp.Or(s.settings.Least, leastPause), subject: subject, now: time.Now,
		}
	}
	s.want(quests, removed)
}

// A stapleQuest is the search for answers on one certificate.
type stapleQuest struct {
	client  *http.Client
	least   time.Duration
	subject source.Subject
	now     func() time.Time

	// newest is the answer that is shown, nil if there is none.
	newest   *answer
	failures int
}

// owner is the namespace of the Secret.
func (q *stapleQuest) owner() string {
	namespace, _, _ := strings.Cut(q.subject.Secret, "/")
	return namespace
}

func (q *stapleQuest) ask(ctx context.Context) (metav1.Object, time.Duration, error) {
	about, err := readSubject(q.subject.Chain)
	if err != nil {
		return q.object(err.Error()), 0, err
	}
	if about == nil {
		return nil, 0, nil
	}
	answered, err := q.fetch(ctx, about)
	now := q.now()
	if err == nil {
		q.failures = 0
		// A cache on the way may have an older one.
		if q.newest == nil || !answered.from.Before(q.newest.from) {
			q.newest = answered
		}
		return q.object(""), max(q.newest.due(now), q.least), nil
	}
	q.failures++
	var refused *refusal
	problem := "no OCSP responder answers"
	if errors.As(err, &refused) {
		problem = refused.reason
		if refused.revoked {
			q.newest = nil
		}
	}
	pause := max(backoff(q.failures), q.least)
	if q.newest != nil {
		if left := q.newest.until.Sub(now); left > 0 {
			// Look again when it gets stale.
			pause = min(pause, left)
		} else {
			q.newest = nil
		}
	}
	return q.object(problem), pause, err
}

// object is what there is now.
func (q *stapleQuest) object(problem string) metav1.Object {
	staple := &source.Staple{ObjectMeta: metav1.ObjectMeta{Name: q.subject.Name}, Secret: q.subject.Secret, Problem: problem}
	if q.newest != nil {
		staple.Response, staple.Until = q.newest.raw, q.newest.until
	}
	return staple
}

// fetch asks the responder with a GET.
func (q *stapleQuest) fetch(ctx context.Context, about *subject) (*answer, error) {
	question, err := ocsp.CreateRequest(about.leaf, about.issuer, nil)
	if err != nil {
		return nil, err
	}
	at := strings.TrimSuffix(about.responder, "/") + "/" + url.QueryEscape(base64.StdEncoding.EncodeToString(question))
	body, err := get(ctx, q.client, at)
	if err != nil {
		return nil, err
	}
	return readAnswer(body, about, q.now())
}

// A subject is a certificate that can be asked about.
type subject struct {
	leaf, issuer *x509.Certificate
	responder    string
}

// tlsFeature is the extension of RFC 7633.
var tlsFeature = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}

// readSubject reads a chain. It returns nil if there is nobody to ask and nobody
// who wants to.
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
	for _, text := range about.leaf.OCSPServer {
		if plainURL(text) {
			about.responder = text
			break
		}
	}
	switch {
	case about.responder == "" && mustBeStapled(about.leaf):
		return nil, errors.New("the certificate must be shown with an OCSP answer, and names no responder that can be asked over http")
	case about.responder == "":
		return nil, nil
	}
	if err := checkIssuer(about.leaf, about.issuer); err != nil {
		return nil, err
	}
	return &about, nil
}

// checkIssuer checks that one certificate signed the other, nil if there is none.
func checkIssuer(leaf, issuer *x509.Certificate) error {
	if issuer == nil {
		return errNoIssuer
	}
	if err := source.CheckKey(issuer.PublicKey); err != nil {
		return fmt.Errorf("the certificate's issuer: %w", err)
	}
	if leaf.CheckSignatureFrom(issuer) != nil {
		return errNoIssuer
	}
	return nil
}

var errNoIssuer = errors.New("the certificate's issuer does not stand behind it")

func mustBeStapled(c *x509.Certificate) bool {
	return slices.ContainsFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(tlsFeature) })
}
