package pki

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/guard"
)

const (
	// maxTime is how long a fetch may take in all.
	maxTime = 5 * time.Second
	// maxBytes is how long a body may be. Certificates and OCSP responses have a
	// few thousand bytes.
	maxBytes     = 64 << 10
	maxRedirects = 3
	maxURL       = 2048
)

// errLocal is the error of a URL that leads to a local address.
var errLocal = errors.New("a loopback, link-local or unspecified address")

// newClient makes a client for URLs of tenants. It checks the address of the
// connection and not that of the name, since the next lookup of a name may have
// another result. It uses no proxy, which would hide the address.
func newClient(allowLocal bool) *http.Client {
	dialer := &net.Dialer{Timeout: maxTime}
	if !allowLocal {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if guard.IsLocal(at.Addr()) {
				return errLocal
			}
			return nil
		}
	}
	return &http.Client{
		Timeout: maxTime,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return checkURL(request.URL)
		},
	}
}

// plainURL is the first of several URLs that may be fetched, empty if there is
// none. Authorities use http: https would need a certificate that has to be
// checked with the same authority.
func plainURL(urls []string) string {
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && len(text) <= maxURL && checkURL(u) == nil {
			return text
		}
	}
	return ""
}

func checkURL(u *url.URL) error {
	if u.Scheme != "http" || u.Host == "" || u.User != nil {
		return errors.New("only http URLs without a user are fetched")
	}
	return nil
}

// get fetches a URL. It sends GET requests only, which change nothing on the
// server.
func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "headgate")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %s", response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err == nil && len(body) > maxBytes {
		err = fmt.Errorf("more than %d bytes", maxBytes)
	}
	return body, err
}
