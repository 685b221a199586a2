package link

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/guard/pemfile"
)

// Files is the Source of a control whose certificates others make, in PEM files: its own certificate
// and key, and the authorities of edges' certificates. They are read again when they change.
func Files(log *slog.Logger, certificate, key, authorities string) Source {
	const without = "edges can't connect"
	pair := pemfile.New(log, "the certificate for edges", without, func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil {
			return nil, err
		}
		return &pair, checkServer(pair.Leaf)
	}, certificate, key)
	trusted := authorityFile(log, "the file with the authorities of edges", without, authorities)
	return func() (*Trust, error) {
		own, err := pair.Get()
		if err != nil {
			return nil, err
		}
		edges, err := trusted.Get()
		if err != nil {
			return nil, err
		}
		return &Trust{Certificate: own, Edges: Pool(edges...)}, nil
	}
}

func authorityFile(log *slog.Logger, what, without, name string) *pemfile.Group[[]*x509.Certificate] {
	return pemfile.New(log, what, without, func(contents [][]byte) ([]*x509.Certificate, error) {
		return ParseCertificates(contents[0])
	}, name)
}

// checkServer returns an error if a certificate is not that of a control. A wildcard does not count.
func checkServer(c *x509.Certificate) error {
	if slices.Contains(c.DNSNames, ServerName) {
		return nil
	}
	return fmt.Errorf("the certificate of the control has not the DNS name %s, but: %s", ServerName, strings.Join(c.DNSNames, ", "))
}
