package lint

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

// A Severity says whether something is not served as it is written.
type Severity string

// The severities.
const (
	// Error is for what is not served as written.
	Error Severity = "error"
	// Notice is for what is served, and for what the manifests alone can't tell.
	Notice Severity = "notice"
)

// A rule is what is known of all findings of one code.
type rule struct {
	code     finding.Code
	severity Severity
	// short is what the code stands for, help what to do about it.
	short, help string
}

// rules are those of all codes.
func rules() []rule {
	return []rule{
		{finding.InvalidValue, Error, "A value that can't be used",
			"The message says what is allowed. With annotations that control access the paths of the Ingress answer 503, with others the default is used."},
		{finding.UnknownKey, Error, "A ConfigMap key that does nothing",
			"Look for a slip in the name of the key, or remove it."},
		{finding.UnknownAnnotation, Error, "An annotation that does not exist",
			"Correct its name, or remove it."},
		{finding.OldPrefix, Notice, "An annotation with the prefix of long ago",
			"ingress-nginx ignores it too. Write it with the new prefix, or remove it."},
		{finding.NotImplemented, Error, "A setting of ingress-nginx that Headgate does not implement",
			"Remove it, or do without. Where it controls access the paths of the Ingress answer 503."},
		{finding.MissingField, Error, "A field that a cluster asks for",
			"Add the field. The message says what it may be."},
		{finding.HostOutsideTLS, Notice, "A host for which the TLS section of its Ingress has no entry",
			"Add the host to spec.tls, or move its rule to an Ingress without a TLS section."},
		{finding.MissingObject, Error, "A reference to an object, or a port of one, that is not there",
			"Correct the name or add the object. In a folder each Service needs an EndpointSlice or Endpoints of its name. It is a notice where the manifests hold no object of that kind at all: then they can't tell."},
		{finding.MissingCapability, Error, "Something that the NGINX of the machine can't do",
			"The message says what it lacks. Lint never finds it: there is no NGINX at hand."},
		{finding.BadCertificate, Error, "A TLS Secret that can't be served as asked",
			"The Secret needs a certificate for the host in tls.crt and its key in tls.key, both as PEM."},
		{finding.IncompleteChain, Notice, "A certificate without those of its issuers",
			"Clients may not trust it. Put the issuers' certificates behind it in tls.crt, or use --enable-ssl-chain-completion."},
		{finding.Expires, Notice, "A certificate that expires soon, or has expired",
			"Renew it."},
		{finding.NoOCSPResponse, Notice, "A certificate for which no OCSP answer can be had",
			"The message says why. It is served without one."},
		{finding.Conflict, Error, "A rule, alias or setting that loses to an older Ingress",
			"Two Ingresses ask for different things in the same place, and the older one has it. Remove one of them."},
		{finding.TooMany, Error, "More than a limit allows",
			"The message says which limit. What is beyond it is not served."},
		{finding.NotAllowed, Error, "What the administrator does not let tenants do",
			"The message says which key of the ConfigMap forbids it."},
		{finding.Refused, Error, "An Ingress that is left out as a whole",
			"The message says what in it is refused, and by which flag."},
		{finding.NotSupported, Error, "Something that Headgate does not serve",
			"It does nothing here. Remove it, or do without."},
		{finding.Unresolved, Notice, "A DNS name whose addresses can't be had",
			"Look whether the name is right and who answers for it."},
		{finding.OldVersion, Notice, "An object of an API version that no cluster of today serves",
			"It is served as if it were of the new version. The message has the new form."},
		{finding.BadManifest, Error, "A file with something in it that can't be read",
			"What can't be read is not served. The message says what is wrong."},
	}
}

// Codes are those that findings may have, in the order of the alphabet.
func Codes() []string {
	var codes []string
	for _, r := range rules() {
		codes = append(codes, string(r.code))
	}
	slices.Sort(codes)
	return codes
}

// Known tells whether findings may have a code.
func Known(code finding.Code) bool { return slices.Contains(Codes(), string(code)) }

// severityOf is that of a finding's code, but for missing objects of a kind that
// was not read at all: Secrets in particular are kept out of repositories.
func severityOf(f finding.Finding, kinds map[string]int) Severity {
	if f.Code == finding.MissingObject {
		if kind := missingKind(f); kind != "" && kinds[kind] == 0 {
			return Notice
		}
	}
	for _, r := range rules() {
		if r.code == f.Code {
			return r.severity
		}
	}
	return Error
}

// missingKind is the kind of the object that is missing: messages name it before
// they quote anything. It is empty if the message names none.
func missingKind(f finding.Finding) string {
	for word := range strings.FieldsSeq(f.Message) {
		switch word {
		case "Secret", "Service", "ConfigMap", "EndpointSlice":
			return word
		}
	}
	return ""
}
