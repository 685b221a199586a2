// Package clientcert requires certificates of TLS clients.
//
// A host's handshakes ask for a certificate, and are never ended for one: each request is
// checked by the policy that its host has when it comes.
package clientcert

import (
	"embed"
	"strconv"

	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/model/resource"
)

const name = "client_certificate"

//go:embed *.lua
var lua embed.FS

var (
	secret = feature.Setting[feature.ObjectName]{
		Annotation: "auth-tls-secret", Parse: feature.SecretIn, Refers: feature.Secret, OnInvalid: feature.Deny, Risk: feature.Medium,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether, Leads: true,
		Doc: "The Secret, as NAMESPACE/NAME, with the CAs of client certificates (ca.crt), and optionally their revocation lists (ca.crl). " +
			"Clients of the host that connect by TLS need a certificate of one of these CAs. Without a usable Secret, all paths of the host answer 403.",
	}
	verify = feature.Setting[string]{
		Annotation: "auth-tls-verify-client", Default: modeOn, Parse: parseMode, Risk: feature.Medium,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether,
		Doc: "on: a client needs a valid certificate. optional: it may have none. optional_no_ca: its certificate may be of any CA, and the backend decides. off: no certificate is asked for.",
	}
	depth = feature.Setting[int]{
		Annotation: "auth-tls-verify-depth", Default: 1, Parse: feature.Optional(feature.Int(0, 1000)), Risk: feature.Low,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether,
		Doc: "The number of intermediate certificates between the certificate of a client and the CA. 0 means 1.",
	}
	match = feature.Setting[pattern]{
		Annotation: "auth-tls-match-cn", Parse: feature.Optional(parsePattern), OnInvalid: feature.Deny, Risk: feature.High,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether,
		Doc: "A regular expression that begins with CN=. It must match the subject of the client's certificate, anywhere in it, or the client gets 403: over plain http too.",
	}
	errorPage = feature.Setting[page]{
		Annotation: "auth-tls-error-page", Parse: feature.Optional(parsePage), OnInvalid: feature.Deny, Risk: feature.High,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether,
		Doc: "The URL that clients without a valid certificate are redirected to (302) instead of a 400. It can contain variables.",
	}
	pass = feature.Setting[bool]{
		Annotation: "auth-tls-pass-certificate-to-upstream", Parse: feature.Bool, OnInvalid: feature.Deny, Risk: feature.Low,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether,
		Doc: "Sends the client's certificate to backends and auth services, as PEM with percent-encoding, in the header ssl-client-cert.",
	}
)

// Feature is the verification of clients by certificate.
func Feature() feature.Feature {
	return feature.Feature{
		Name:      name,
		Doc:       "Requires client certificates.",
		Settings:  []feature.AnySetting{secret, verify, depth, match, errorPage, pass},
		Route:     route,
		Host:      host,
		Predict:   prediction.ByPhase{prediction.RoutePhase: predict, prediction.DeniedPhase: predictRefusal},
		Lua:       lua,
		Resources: resources(),
	}
}

// resources are the headers about the client, with the variables that
// client_certificate.lua sets.
func resources() (r resource.Resources) {
	for _, h := range []struct{ header, variable string }{
		{"ssl-client-verify", "verify"}, {"ssl-client-subject-dn", "subject"}, {"ssl-client-issuer-dn", "issuer"}, {"ssl-client-cert", "certificate"},
	} {
		v := resource.Variable{Name: resource.NewName("hg_client_" + h.variable)}
		r.Variables = append(r.Variables, v)
		r.Headers = append(r.Headers, resource.Header{Name: resource.NewWord(h.header), Value: resource.VariableValue(v.Name.String())})
	}
	return r
}

// handshake is what client_certificate.lua reads in TLS handshakes. Without ID no
// certificate is asked for.
type handshake struct {
	verification
}

// A verification is how certificates are verified.
type verification struct {
	// ID is that of all that the result depends on.
	ID string `json:"id,omitempty"`
	// Authorities is the name of the content with certificates and revocation lists.
	Authorities string `json:"authorities,omitempty"`
	Depth       int    `json:"depth,omitempty"`
	// Owner is the namespace that the Secret is in.
	Owner string `json:"owner,omitempty"`
}

// policy is what client_certificate.lua reads of a route.
type policy struct {
	verification
	// Refuse has the requests of a host whose policy can't be set up answered 403.
	Refuse  bool   `json:"refuse,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	// PatternOwner is the namespace of the Ingress with the pattern.
	PatternOwner string            `json:"pattern_owner,omitempty"`
	Page         template.Template `json:"page,omitempty"`
	Pass         bool              `json:"pass,omitempty"`

	secret, subject string
}

func host(v feature.Values, out *feature.HostOut) {
	if !v.IsSet(secret) {
		return
	}
	out.Policy = policy{Refuse: true}
	data, ok := feature.FromSecret(v, secret, name, readSecret)
	if !ok {
		// This was reported, and denies.
		return
	}
	object := secret.Get(v)
	if data.problem != "" {
		deny(&out.Report, v, data.problem)
		return
	}
	p := policy{Mode: verify.Get(v), Pattern: match.Get(v).text, Pass: pass.Get(v), secret: object.String(), subject: match.Get(v).written}
	p.Owner = object.Namespace
	if p.Pattern != "" {
		p.PatternOwner = v.OriginOf(match).Namespace
	}
	if at := errorPage.Get(v); at.target != nil {
		p.Page = at.target
	} else if at.text != "" {
		out.Warn(errorPage, finding.NotSupported, "only a URL that begins with http:// or https:// is supported", "clients without a valid certificate get 400")
	}
	if p.Mode != modeOff {
		p.Authorities, p.Depth = data.content.Name, max(1, depth.Get(v))
		p.ID = p.Authorities + " " + strconv.Itoa(p.Depth)
		out.Contents = append(out.Contents, data.content)
	}
	out.TLS, out.Policy = handshake{p.verification}, p
}

// deny reports what is wrong with the Secret. What is in another namespace stays there.
func deny(out *feature.Report, v feature.Values, problem string) {
	if object := secret.Get(v); object.Namespace != v.OriginOf(secret).Namespace {
		out.Deny(secret, finding.NotAllowed, feature.Foreign(feature.Secret, object))
		return
	}
	out.Deny(secret, finding.InvalidValue, problem)
}

// route closes the paths of an Ingress that asks for certificates in vain.
func route(v feature.Values, out *feature.RouteOut) {
	other := false
	if first := out.Host.First; first != nil {
		values, ok := first(secret)
		other = ok && values.Origin() != v.Origin()
	}
	if v.IsSet(secret) {
		data, ok := feature.FromSecret(v, secret, name, readSecret)
		if ok && data.problem == "" {
			return
		}
		// Usually the whole host is denied, and that is reported.
		out.Denied = true
		if other {
			out.Deny(secret, finding.Conflict, "another Ingress's Secret applies to the host, and this one can't be used either")
		}
		return
	}
	if other {
		return
	}
	for _, s := range []feature.AnySetting{verify, depth, match, errorPage, pass} {
		if v.IsSet(s) && asks(v, s) {
			out.Deny(s, finding.MissingField, "has no effect without "+secret.Annotation+" at the host")
		}
	}
}

// asks reports whether the author of a setting believes that clients have certificates.
func asks(v feature.Values, s feature.AnySetting) bool {
	if v.Rejects(s) {
		return true
	}
	switch s.Spec().Annotation {
	case verify.Annotation:
		return verify.Get(v) != modeOff
	case match.Annotation:
		return match.Get(v).text != ""
	case errorPage.Annotation:
		return errorPage.Get(v).text != ""
	case pass.Annotation:
		return pass.Get(v)
	}
	return depth.Get(v) > 1
}

// predict decides as client_certificate.lua does. No certificate is simulated.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	asked := q.Encrypted && p.Mode != modeOff
	switch {
	case p.Pattern != "" && !asked:
		return prediction.Answer{Status: 403, Why: "the client has shown no certificate, and its subject must match " + finding.Shorten(p.subject) + " (" + match.Annotation + ")"}
	case !asked && p.Mode != modeOff:
		return prediction.Answer{Why: "over http no certificate is asked for (" + secret.Annotation + ")"}
	case !asked:
		return prediction.Answer{}
	}
	status := "400"
	if p.Page != nil {
		status = "302 to " + errorPage.Annotation
	}
	why := status + map[string]string{
		modeOn:           " if the client shows no valid certificate",
		modeOptional:     " if the client shows a certificate that is not valid",
		modeOptionalNoCA: " if the client shows a certificate that has expired or been revoked",
	}[p.Mode] + " for the CAs of Secret " + p.secret + " (" + secret.Annotation + ")"
	if p.Pattern != "" {
		why += ", 403 if its subject does not match " + finding.Shorten(p.subject) + " (" + match.Annotation + ")"
	}
	return prediction.Answer{Why: why}
}

func predictRefusal(q prediction.Request) prediction.Answer {
	if p, _ := q.Policy.(policy); p.Refuse {
		return prediction.Answer{Status: 403, Why: "all paths of the host answer 403, because " + secret.Annotation + " is rejected (see the findings)"}
	}
	return prediction.Answer{}
}
