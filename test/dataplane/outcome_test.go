package dataplane_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A record notes by their marks what backends were asked.
type record struct {
	mu   sync.Mutex
	seen map[string]string
	// held are the requests with X-Hold, which wait for release.
	held    chan struct{}
	release chan struct{}
}

func newRecord() *record {
	return &record{seen: map[string]string{}, held: make(chan struct{}), release: make(chan struct{})}
}

// backend is a backend whose requests are noted.
func (r *record) backend(t *testing.T, name string) string {
	return headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		said := name + " " + cleaned(request.RequestURI)
		// Over HTTP/3, NGINX announces a body if it does not know in time that there is none.
		if n, _ := request.Body.Read(make([]byte, 1)); n > 0 && len(request.TransferEncoding) > 0 {
			said += " chunked"
		}
		r.mu.Lock()
		r.seen[request.Header.Get("X-Mark")] += said
		r.mu.Unlock()
		if request.Header.Get("X-Hold") != "" {
			r.held <- struct{}{}
			<-r.release
		}
	}))
}

// cleaned is a target without "..": beside a guard that is what backends are
// asked for.
func cleaned(target string) string {
	u, err := url.ParseRequestURI(target)
	if err != nil || !slices.Contains(strings.Split(u.Path, "/"), "..") {
		return target
	}
	u.Path, u.RawPath = path.Clean(u.Path), ""
	return u.RequestURI()
}

func (r *record) of(mark string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[mark]
}

// An outcome is what became of a request.
type outcome struct {
	// backend is which one got it, and what for. It is empty if none did.
	backend          string
	status           int
	location, origin string
	challenge        string
}

// isDefault reports whether the built-in default backend may have answered: a
// guard of the host's first Ingress comes before it.
func (o outcome) isDefault() bool { return !o.reached() && o.status == http.StatusNotFound }

func (o outcome) reached() bool { return o.backend != "" }

// fits reports whether it may be the outcome behind a guard, where open is the
// one without. free: no guard is between client and backend.
func (o outcome) fits(open outcome, free bool, refusals ...int) bool {
	if o == open {
		return free
	}
	return !o.reached() && slices.Contains(refusals, o.status)
}

// fitsFirst reports whether it may be the outcome behind a guard that comes first, where open is
// the one without. Nothing else may lead a request to a backend.
func (o outcome) fitsFirst(open outcome, refusals ...int) bool {
	return !o.reached() && (o == open || slices.Contains(refusals, o.status))
}

func (o outcome) String() string {
	text := cmp.Or(o.backend, strings.TrimSpace(fmt.Sprint(o.status, " ", o.location)))
	if o.origin != "" {
		text += ", for " + o.origin
	}
	return text
}

// copied is a body that can be read once more.
func copied(body io.Reader) io.Reader {
	switch body := body.(type) {
	case *strings.Reader:
		again := *body
		return &again
	case unsized:
		again := *body.Reader
		return unsized{&again}
	}
	return nil
}

// errorService answers with the status that it stands in for.
func errorService(t *testing.T) string {
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.ContentLength != 0 || r.Header.Get("Authorization") != "" {
			t.Errorf("an error service got %s, %d bytes, Authorization %q", r.RequestURI, r.ContentLength, r.Header.Get("Authorization"))
		}
		status, err := strconv.Atoi(r.Header.Get("X-Code"))
		if err != nil {
			t.Errorf("an error service got X-Code %q", r.Header.Get("X-Code"))
			return
		}
		w.Header().Set("Location", "/page")
		w.WriteHeader(status)
	}))
}

// ingresses are those of a host with a bypass and a guard.
func (b bypass) ingresses(host, authService string, guard []string) string {
	var annotations []string
	for _, a := range slices.Concat(guard, b.annotations) {
		a = strings.NewReplacer("ADDRESS", authService, "HOST", host).Replace(a)
		if !slices.Contains(annotations, a) {
			annotations = append(annotations, a)
		}
	}
	ingress := headgatetest.Ingress(host, b.under+host, cmp.Or(b.path, "/"), cmp.Or(b.service, "app"), annotations...)
	if b.secured {
		ingress = headgatetest.WithTLS(ingress, "certificate "+host)
	}
	if b.beside != nil {
		ingress += b.beside(host, annotations)
	}
	return ingress
}

// guardSecrets are the Secrets of guards, with the authorities of client certificates.
func guardSecrets(authorities ...headgatetest.KeyPair) string {
	bundle := ""
	for _, a := range authorities {
		bundle += a.Certificate
	}
	return usersSecret + "---\nkind: Secret\napiVersion: v1\nmetadata: {name: digests}\nstringData: {auth: 'user:here:3192857718739ad1765b1f73c656a18e'}\n" +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: authorities}\nstringData:\n  ca.crt: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(bundle), "\n", "\n    ") + "\n"
}
