package lint

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

// A Severity is whether something is not served as written, as that of package finding.
type Severity string

// The severities.
const (
	// Error is for what is not served as written.
	Error Severity = "error"
	// Notice is for what is served, or what the manifests alone don't show.
	Notice Severity = "notice"
)

// A rule describes all findings of one code.
type rule struct {
	code finding.Code
	// short is the meaning of the code, help what to do about it.
	short, help string
}

// rules are the rules of all codes.
func rules() []rule {
	return []rule{
		{finding.InvalidValue, "An invalid value",
			"The message says what the value must be. If the annotation controls access, the paths of the Ingress answer 503. Otherwise the default is used."},
		{finding.UnknownKey, "A ConfigMap key without effect",
			"Check the key for typos, or remove it."},
		{finding.UnknownAnnotation, "An unknown annotation",
			"Check the annotation for typos, or remove it."},
		{finding.OldPrefix, "An annotation with the old prefix",
			"ingress-nginx ignores it too. Use the current prefix, or remove the annotation."},
		{finding.MissingField, "A missing field that a cluster requires",
			"Add the field. The message says what it must be."},
		{finding.HostOutsideTLS, "A host that is not in the TLS section of its Ingress",
			"Add the host to spec.tls, or move its rule to an Ingress without a TLS section."},
		{finding.HostOwned, "A name that belongs to another namespace",
			"Use another name, or have the owner list the namespace in the annotation host-shared-with. See docs/host-ownership.md."},
		{finding.HostShared, "A host that several namespaces use",
			"Check that it is intended. The ConfigMap key host-ownership gives each host to one namespace. See docs/host-ownership.md."},
		{finding.MissingObject, "A reference to an object that does not exist, or to a port that the object does not have",
			"Correct the name, or add the object. In a folder, each Service needs an EndpointSlice or Endpoints with its name. If the manifests have no object of that kind at all, the severity is notice: then lint can't know whether the object exists."},
		{finding.MissingCapability, "A setting that this NGINX does not support",
			"The message says what is missing. Lint never reports it, because lint does not run NGINX."},
		{finding.BadCertificate, "A TLS Secret that can't be served as requested",
			"The Secret needs a certificate for the host in tls.crt and its key in tls.key, both as PEM."},
		{finding.IncompleteChain, "A certificate without those of its issuers",
			"Clients may not trust it. Append the issuers' certificates in tls.crt, or use --enable-ssl-chain-completion."},
		{finding.Expires, "A certificate that has expired or expires soon",
			"Renew it."},
		{finding.NoOCSPResponse, "A certificate without an OCSP response",
			"The message has the reason. The certificate is served without the response."},
		{finding.Conflict, "A rule, alias or setting that lost to an older Ingress",
			"Two Ingresses claim the same thing, and the older one gets it. Remove one of the claims."},
		{finding.TooMany, "More than a limit allows",
			"The message names the limit. What exceeds it is not served."},
		{finding.Bypassed, "A setting that TLS passthrough bypasses",
			"TLS connections go to the backend of the path / as they are. Have that backend control access, or remove the annotation ssl-passthrough."},
		{finding.UnavailablePort, "A TCP or UDP port that can't be opened",
			"Choose another port for the service."},
		{finding.Waits, "A combination of static settings that waits for a reload of NGINX, or rules of ModSecurity for their test",
			"It comes into effect by itself. Lint never reports it, because lint does not run NGINX."},
		{finding.GivenUp, "A regular expression that NGINX gave up on",
			"It takes too many steps on what clients sent. Lint never reports it, because lint does not run NGINX."},
		{finding.NotAllowed, "A setting that the administrator does not allow to tenants",
			"The message names the key of the ConfigMap."},
		{finding.Excluded, "An Ingress that is excluded as a whole",
			"The message names the part of the Ingress and the flag that excludes it."},
		{finding.NotSupported, "A field that Headgate does not support",
			"It has no effect. Remove it."},
		{finding.NoEffect, "A valid setting that Headgate has nothing to do with",
			"The message has the reason. Nothing is missing without it."},
		{finding.Unexpected, "A setting that does something else than it seems",
			"It is served as written. The message says what it does; change it if something else was meant."},
		{finding.Unresolved, "A DNS name without known addresses",
			"Check the name and its DNS servers."},
		{finding.Unhealthy, "Endpoints whose health check fails",
			"The message has the reason. Lint never reports it, because lint makes no health checks."},
		{finding.OldVersion, "An object of an API version that clusters don't serve any more",
			"It is served as if it had the current version. The message has the current form."},
		{finding.BadManifest, "A file that can't be read completely",
			"Unreadable parts are not served. The message says what is wrong."},
	}
}

// Codes returns all codes of findings in alphabetical order.
func Codes() []string {
	var codes []string
	for _, r := range rules() {
		codes = append(codes, string(r.code))
	}
	slices.Sort(codes)
	return codes
}

// Known reports whether a code of findings exists.
func Known(code finding.Code) bool { return slices.Contains(Codes(), string(code)) }

// severityOf returns the severity of a finding. A missing object is a notice if no
// object of its kind was read: Secrets in particular are not in repositories. Without
// kinds, all objects that exist were read.
func severityOf(f finding.Finding, kinds map[string]int) Severity {
	if f.Code == finding.MissingObject && kinds != nil {
		if kind := missingKind(f); kind != "" && kinds[kind] == 0 {
			return Notice
		}
	}
	return ofCode(f.Code)
}

// ofCode returns the severity of a code.
func ofCode(code finding.Code) Severity {
	if code.Severity() == finding.Notice {
		return Notice
	}
	return Error
}

// missingKind returns the kind of the missing object, which messages name before
// they quote anything, or empty.
func missingKind(f finding.Finding) string {
	for word := range strings.FieldsSeq(f.Message) {
		if slices.Contains([]string{"Secret", "Service", "ConfigMap", "EndpointSlice"}, word) {
			return word
		}
	}
	return ""
}
