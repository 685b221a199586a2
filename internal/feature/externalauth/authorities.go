package externalauth

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// authorities are the value of auth-url-ca. Its zero value stands for the system's.
type authorities struct {
	off bool
	// bundle is PEM with nothing but certificates, nil for the system's.
	bundle []byte
	count  int
}

var authURLCA = feature.Setting[authorities]{
	Key: "auth-url-ca", Parse: feature.Optional(parseAuthorities), Scope: feature.ScopeProcess,
	Doc: "The CAs that verify auth services outside the cluster: of an auth-url or global-auth-url with https whose host is not a Service or pod. " +
		"The certificates replace those of the system, which are the default. off does not verify.",
}

// String does not print the certificates.
func (a authorities) String() string {
	switch {
	case a.off:
		return "off"
	case a.bundle == nil:
		return "the CAs of the system"
	}
	return fmt.Sprintf("%d certificates", a.count)
}

// parseAuthorities keeps nothing of the text but certificates.
func parseAuthorities(text string) (authorities, error) {
	if strings.EqualFold(text, "off") {
		return authorities{off: true}, nil
	}
	var a authorities
	blocks, seen := 0, map[string]bool{}
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != "CERTIFICATE" {
			return authorities{}, fmt.Errorf("must be off or certificates in PEM, and nothing else: there is a block %q", finding.Shorten(block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return authorities{}, fmt.Errorf("must be off or certificates in PEM: certificate %d: %w", blocks, err)
		}
		if der := string(block.Bytes); !seen[der] {
			seen[der] = true
			a.bundle = append(a.bundle, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	if a.count = len(seen); a.count == 0 {
		return authorities{}, errors.New("must be off or certificates in PEM")
	}
	// pem.Decode skips what it can't read, as it skips comments.
	if strings.Count(text, "-----BEGIN ") != blocks {
		return authorities{}, errors.New("must be off or certificates in PEM: one of them is damaged")
	}
	return a, nil
}

func process(v feature.Values, out *feature.ProcessOut) {
	if a := authURLCA.Get(v); a.bundle != nil {
		out.Process.Authorities = model.NewContent(a.bundle)
	}
	out.Process.LogsCalls = logCalls.Get(v)
}

var logCalls = feature.Setting[bool]{
	Key: "enable-auth-access-log", Parse: feature.Bool, Scope: feature.ScopeProcess,
	Doc: "Logs requests to auth services to the access log, beside the requests that they are for.",
}

// check returns how the service is called. It denies the route if the certificate of
// the service must be verified and can't be.
func (s settings) check(v feature.Values, out *feature.RouteOut, call callee) (check model.Check, ok bool) {
	a, host := authURLCA.Get(v), call.Host
	switch {
	case !call.Secure:
		return model.CheckHTTP, true
	case call.Own || (model.Call{Host: host}).InCluster():
		return model.CheckHTTPS, true
	}
	if a.off {
		out.Warn(s.url, finding.InvalidValue, fmt.Sprintf("the certificate of %s is not verified, because the key %s is off", host, authURLCA.Key),
			"an attacker on the network can answer for the auth service and allow requests")
		return model.CheckHTTPS, true
	}
	if _, is := model.Address(host); is {
		out.Deny(s.url, finding.InvalidValue, fmt.Sprintf(
			"%s: NGINX can't verify the certificate of an address: must have a name, or the key %s must be off", host, authURLCA.Key))
		return 0, false
	}
	if a.bundle == nil && !v.Has(feature.SystemAuthorities) {
		out.Deny(s.url, finding.MissingCapability, fmt.Sprintf(
			"the certificate of %s can't be verified: the system has no CAs (package ca-certificates, or $SSL_CERT_FILE), and the key %s has none", host, authURLCA.Key))
		return 0, false
	}
	return model.CheckVerified, true
}
