package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/test/e2e/clustertest"
)

// anyCertificate accepts every certificate; the tests check it themselves.
func anyCertificate() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// An answer is what a client sees.
type answer struct {
	status int
	// backend is the name of the endpoint that answered.
	backend string
	// location is the target of a redirect.
	location string
	// certificate is PEM, empty over HTTP.
	certificate string
}

// get requests a URL of the instance, over a new connection.
func (h *headgate) get(ctx context.Context, url string) (answer, error) {
	port := httpPort
	if strings.HasPrefix(url, "https:") {
		port = httpsPort
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	response, err := h.clients[port].Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, location: response.Header.Get("Location")}
	if rest, ok := strings.CutPrefix(string(body), "backend: "); ok {
		a.backend, _, _ = strings.Cut(rest, "\n")
	}
	if response.TLS != nil {
		leaf := response.TLS.PeerCertificates[0]
		a.certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}))
	}
	return a, nil
}

// An expectation returns what is wrong with an answer, or nil.
type expectation func(answer) error

func status(want int) expectation {
	return func(a answer) error {
		if a.status != want {
			return fmt.Errorf("status %d, want %d", a.status, want)
		}
		return nil
	}
}

func from(backend string) expectation {
	return func(a answer) error {
		if a.status != http.StatusOK || a.backend != backend {
			return fmt.Errorf("status %d from %q, want %q", a.status, a.backend, backend)
		}
		return nil
	}
}

// showing expects the backend behind the certificate.
func showing(pair headgatetest.KeyPair, backend string) expectation {
	return func(a answer) error {
		if a.certificate != pair.Certificate {
			return fmt.Errorf("status %d with another certificate than the host's", a.status)
		}
		return from(backend)(a)
	}
}

func (h *headgate) check(ctx context.Context, url string, is expectation) error {
	a, err := h.get(ctx, url)
	if err == nil {
		err = is(a)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// want fails the test unless the URL's answer is as expected right now.
func (h *headgate) want(url string, is expectation) {
	h.t.Helper()
	if err := h.check(h.t.Context(), url, is); err != nil {
		h.t.Error(err)
	}
}

// await waits until the URL's answer is as expected.
func (h *headgate) await(url string, is expectation) {
	h.t.Helper()
	began := time.Now()
	clustertest.Eventually(h.t, timeout, func(ctx context.Context) error { return h.check(ctx, url, is) })
	h.t.Logf("%s after %v", url, time.Since(began).Round(time.Millisecond))
}
