package review

import (
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/ingressnginx"
)

// A Verdict is what becomes of an Ingress because of a finding.
type Verdict string

// The verdicts.
const (
	Refuse Verdict = "refused"
	Warn   Verdict = "warning"
	// Never is for findings that no Ingress can have in the webhook.
	Never Verdict = "–"
)

// A rule says what becomes of an Ingress with a finding of a code.
type rule struct {
	code finding.Code
	// annotation is for findings about annotations, spec for those about the spec, and
	// denies for those because of which requests are answered 503.
	annotation, spec, denies Verdict
	why                      string
}

// rules are the rules of all codes.
func rules() []rule {
	return []rule{
		{finding.InvalidValue, Warn, Refuse, Refuse, "A value that is not used is refused if ingress-nginx refuses it or answers 503, even if Headgate uses the default. For other values, ingress-nginx uses the default too. A host, path or backend that is invalid can't be served at all."},
		{finding.NotAllowed, Refuse, Refuse, Refuse, "The administrator does not allow it."},
		{finding.Excluded, Refuse, Refuse, Refuse, "Nothing of the Ingress would be served."},
		{finding.HostOwned, Refuse, Refuse, Refuse, "The name belongs to another namespace, and nothing would be served for it. The owner of a name that others ask for is only warned."},
		{finding.TooMany, Refuse, Refuse, Refuse, "What is too much is answered 503, or not served. That holds for other Ingresses too, if this one is older and takes their place."},
		{finding.MissingCapability, Warn, Warn, Refuse, "This NGINX can't do it."},
		{finding.MissingObject, Warn, Warn, Warn, "The object may come later. There is no warning about a Secret or ConfigMap which no Ingress has referred to yet, since it is not known whether that exists."},
		{finding.Conflict, Warn, Warn, Refuse, "The rest is served. The same path in two Ingresses is refused by a rule of its own, see below."},
		{finding.NotSupported, Warn, Warn, Refuse, "The rest is served."},
		{finding.Bypassed, Warn, Warn, Refuse, "TLS connections are passed through, without the setting."},
		{finding.BadCertificate, Warn, Warn, Refuse, "The Secret may change. Until then, the default certificate is served."},
		{finding.IncompleteChain, Warn, Warn, Refuse, "The certificate is served."},
		{finding.HostOutsideTLS, Warn, Warn, Refuse, "The host is served."},
		{finding.HostShared, Warn, Warn, Refuse, "Both namespaces are served, unless the key `host-ownership` says otherwise."},
		{finding.Unresolved, Warn, Warn, Warn, "DNS servers may answer later."},
		{finding.UnknownAnnotation, Warn, Warn, Warn, "It has no effect."},
		{finding.OldPrefix, Warn, Warn, Warn, "It has no effect."},
		{finding.NoEffect, Warn, Warn, Warn, "Nothing is missing without it."},
		{finding.Unexpected, Warn, Warn, Warn, "It is served as written."},
		{finding.UnknownKey, Never, Never, Never, "It is about the ConfigMap."},
		{finding.Expires, Never, Never, Never, "It is about certificates in use."},
		{finding.NoOCSPResponse, Never, Never, Never, "It is about certificates in use."},
		{finding.Waits, Never, Never, Warn, "NGINX could not test the rules of ModSecurity, and will do so again. Other findings of this code are about the NGINX that runs."},
		{finding.GivenUp, Never, Never, Never, "It is about the NGINX that runs."},
		{finding.Unhealthy, Never, Never, Never, "It is about endpoints."},
		{finding.UnavailablePort, Never, Never, Never, "It is about the ConfigMaps of TCP and UDP services."},
		{finding.MissingField, Never, Never, Never, "The API server refuses the Ingress."},
		{finding.OldVersion, Never, Never, Never, "The API server converts the Ingress."},
		{finding.BadManifest, Never, Never, Never, "It is about files."},
	}
}

// verdictOf is what becomes of an Ingress with a finding, under a prefix of annotations. What
// is in no rule is refused.
func verdictOf(f finding.Finding, prefix string) Verdict {
	for _, r := range rules() {
		switch {
		case r.code != f.Code:
		case f.Denies, f.Code == finding.InvalidValue && f.Rejected && closes(f.Field, prefix):
			return r.denies
		case strings.HasPrefix(f.Field, "spec."):
			return r.spec
		default:
			return r.annotation
		}
	}
	return Refuse
}

// closes reports whether ingress-nginx refuses Ingresses with a bad value of an annotation, or
// answers 503 on their paths.
func closes(field, prefix string) bool {
	name, is := strings.CutPrefix(field, prefix+"/")
	annotation, known := ingressnginx.Lookup(name)
	return is && known && annotation.Closes
}

// takes reports whether a finding about another Ingress is a reason to refuse this one,
// if this one causes it.
func takes(f finding.Finding) bool {
	return f.Code == finding.TooMany && strings.HasPrefix(f.Object, "ingress/")
}
