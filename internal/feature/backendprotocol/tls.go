package backendprotocol

import (
	"errors"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// The variables that Lua sets for each request.
const (
	nameVariable        = "hg_backend_tls_name"
	certificateVariable = "hg_backend_tls_certificate"
)

// defaultName is that of the upstream block of ingress-nginx, which NGINX takes where there
// is no other: certificates of backends may have been issued for it.
const defaultName = "upstream_balancer"

// maxDepth is longer than chains are. Each value is a profile of its own.
const maxDepth = 10

// bothVersions are those that backends may use.
const bothVersions = model.TLS12 | model.TLS13

var (
	secret = feature.Setting[feature.ObjectName]{
		Annotation: "proxy-ssl-secret", Parse: parseSecret, Refers: feature.Secret, OnInvalid: feature.Deny, Risk: feature.Medium,
		Doc: "The Secret, as NAMESPACE/NAME, with the CAs of backends (ca.crt), and with the certificate and the key that are shown to them (tls.crt, tls.key). " +
			"It also applies to other Ingresses of the host and the namespace that have none, unless proxy-ssl-location-only is true.",
	}
	verify = feature.Setting[bool]{
		Annotation: "proxy-ssl-verify", Parse: feature.Optional(feature.Either("on", "off")), OnInvalid: feature.Deny, When: usesTLS, Risk: feature.Low,
		Doc: "Verifies the certificates of backends by the CAs of proxy-ssl-secret (on or off). If there are none, the paths of the Ingress answer 503.",
	}
	verifyDepth = feature.Setting[int]{
		Annotation: "proxy-ssl-verify-depth", Needs: feature.Needs(verify, verify.Get), Default: 1, Parse: feature.Optional(feature.Int(0, 1000)), Risk: feature.Low,
		Doc: "The number of intermediate certificates between the certificate of a backend and the CA. 0 means 1, and more than 10 means 10.",
	}
	verifyName = feature.Setting[string]{
		Annotation: "proxy-ssl-name", Default: defaultName, Parse: parseName, Risk: feature.High,
		Doc: "The name that the certificate of a backend must have, and that is sent by SNI.",
	}
	sendName = feature.Setting[bool]{
		Annotation: "proxy-ssl-server-name", Parse: feature.Optional(feature.Either("on", "off")), Risk: feature.Low,
		Doc: "Sends the name to the backend by SNI (on or off).",
	}
	tlsVersions = feature.Setting[model.TLSVersions]{
		Annotation: "proxy-ssl-protocols", Default: model.TLS12, Parse: parseVersions, Risk: feature.Low,
		Doc: "The TLS versions for backends: TLSv1.2, TLSv1.3 or both, separated by spaces. By default it is both, and TLSv1.2 with proxy-ssl-secret.",
	}
	tlsCiphers = feature.Setting[[]int]{
		Annotation: "proxy-ssl-ciphers", Parse: parseCiphers, Risk: feature.Medium,
		Doc: "The ciphers of TLS 1.2 for backends, in order and separated by colons: " + strings.Join(cipherNames, ", ") + "; and behind the first one " + strings.Join(cipherExclusions, ", ") + ".",
	}
	locationOnly = feature.Setting[bool]{
		Key: "proxy-ssl-location-only", Parse: feature.Bool,
		Doc: "Restricts proxy-ssl-secret, and the annotations that go with it, to the paths of its own Ingress.",
	}
)

// The directives of profiles with TLS. Each is a part of what a backend, or Headgate, relies on
// once there is a connection: TLS must be set on all of them.
var (
	versions = directive.Directive{
		Name: "ssl_protocols", TLS: true, Kind: directive.Set, Words: strings.Fields((model.TLS10 | model.TLS11 | bothVersions).String()),
		Samples: []int64{0, int64(model.TLS12), int64(model.TLS13), int64(bothVersions)},
	}
	ciphers        = directive.Directive{Name: "ssl_ciphers", TLS: true, Kind: directive.Ordered, Words: cipherWords()}
	verification   = directive.Directive{Name: "ssl_verify", TLS: true, Kind: directive.OnOff}
	depth          = directive.Directive{Name: "ssl_verify_depth", TLS: true, Kind: directive.Count, Samples: []int64{0, 1, maxDepth}}
	authorities    = directive.Directive{Name: "ssl_trusted_certificate", TLS: true, Kind: directive.File}
	serverName     = directive.Directive{Name: "ssl_server_name", TLS: true, Kind: directive.OnOff, Samples: []int64{0, 1}}
	tlsName        = directive.Directive{Name: "ssl_name", TLS: true, Kind: directive.Variable, Variable: nameVariable}
	certificate    = directive.Directive{Name: "ssl_certificate", TLS: true, Kind: directive.Variable, Variable: certificateVariable}
	certificateKey = directive.Directive{Name: "ssl_certificate_key", TLS: true, Kind: directive.Variable, Variable: certificateVariable}
)

func directives() directive.List {
	return directive.List{versions, ciphers, verification, depth, authorities, serverName, tlsName, certificate, certificateKey}
}

// A connection is how TLS connections to backends are made.
type connection struct {
	// hasSecret is set where other Ingresses of the host take it over.
	hasSecret bool
	versions  model.TLSVersions
	ciphers   []int
	// verifies is set where the certificate of the backend must be valid for the name, and
	// come from the authorities over at most depth intermediate ones.
	verifies    bool
	depth       int
	authorities model.Content
	name        string
	sendsName   bool
	certificate model.Content
}

// A problem of the Secret denies.
type problem struct {
	code    finding.Code
	message string
}

// connectionOf reads the settings of an Ingress. Without a Secret, nothing is verified and no
// certificate is shown; in ingress-nginx, the others have no effect then.
func connectionOf(v feature.Values) (connection, *problem) {
	c := connection{versions: bothVersions}
	if secret.Get(v).Name == "" {
		if v.IsSet(tlsVersions) && !v.Rejects(tlsVersions) {
			c.versions = tlsVersions.Get(v)
		}
		c.ciphers, c.name, c.sendsName = tlsCiphers.Get(v), verifyName.Get(v), sendName.Get(v)
		return c, nil
	}
	data, ok := feature.FromSecret(v, secret, name, readSecret)
	if !ok {
		// This was reported, and denies.
		return c, nil
	}
	if data.problem != "" {
		return c, problemOf(v, finding.InvalidValue, data.problem)
	}
	c = connection{
		hasSecret: true, versions: tlsVersions.Get(v), ciphers: tlsCiphers.Get(v), name: verifyName.Get(v), sendsName: sendName.Get(v),
		certificate: data.certificate,
	}
	if !verify.Get(v) {
		return c, nil
	}
	if data.authorities.Name == "" {
		return c, problemOf(v, finding.MissingObject, "the certificate of the backend can't be verified: the Secret has no "+caKey)
	}
	c.verifies, c.authorities = true, data.authorities
	c.depth = min(max(1, verifyDepth.Get(v)), maxDepth)
	return c, nil
}

// problemOf is a problem of the Secret. What is in another namespace stays there.
func problemOf(v feature.Values, code finding.Code, message string) *problem {
	if name := secret.Get(v); name.Namespace != v.Origin().Namespace {
		return &problem{finding.NotAllowed, feature.Foreign(feature.Secret, name)}
	}
	return &problem{code, message}
}

func parseSecret(text string) (feature.ObjectName, error) {
	if strings.ReplaceAll(text, " ", "") == "" {
		return feature.ObjectName{}, nil
	}
	return feature.SecretIn(text)
}

// nameForm has no variables: requests with different names must not share connections. The
// TLS library takes a name that begins with a dot for all names below it.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

func parseName(text string) (string, error) {
	if text == "" {
		return defaultName, nil
	}
	if !nameForm.MatchString(text) {
		return "", errors.New("must be a name of at most 253 letters, digits and ._-, without variables")
	}
	return text, nil
}

func parseVersions(text string) (model.TLSVersions, error) {
	if text == "" {
		return model.TLS12, nil
	}
	set, err := model.NewTLSVersions(text)
	if err != nil || set&^bothVersions != 0 {
		return 0, errors.New("must be TLSv1.2, TLSv1.3 or both, separated by spaces")
	}
	return set, nil
}
