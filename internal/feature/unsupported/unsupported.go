// Package unsupported denies routes that ask for access control that Headgate does
// not support yet: they answer 503. If the annotations were ignored, routes that
// their owner believes to be protected would be open.
//
// An annotation is removed from this list when a feature supports it.
package unsupported

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

var settings = []feature.AnySetting{
	guard("auth-tls-secret", "Requires a client certificate."),
	allowlist("allowlist-source-range", "Allows only the listed client addresses."),
	allowlist("whitelist-source-range", "The old name of allowlist-source-range."),
	guard("denylist-source-range", "Denies the listed client addresses."),
	guardKey("whitelist-source-range", "Allows only the listed client addresses."),
	guardKey("denylist-source-range", "Denies the listed client addresses."),
	guardKey("block-cidrs", "Denies the listed client addresses."),
	guardKey("block-user-agents", "Denies the listed user agents."),
	guardKey("block-referers", "Denies the listed referers."),
}

func guardKey(key, doc string) feature.Setting[string] {
	return feature.Setting[string]{
		// Charts write empty keys.
		Key: key, Parse: feature.Optional(refuse), OnInvalid: feature.Deny,
		Doc: doc + " Not supported yet: all paths answer 503.",
	}
}

func guard(annotation, doc string) feature.Setting[string] {
	return feature.Setting[string]{
		Annotation: annotation, Parse: refuse, OnInvalid: feature.Deny, Risk: feature.Low,
		Doc: doc + " Not supported yet: the paths of the Ingress answer 503.",
	}
}

// allowlist accepts a list of all addresses: the solver of cert-manager has one, and
// without it certificates would not be renewed.
func allowlist(annotation, doc string) feature.Setting[string] {
	s := guard(annotation, doc)
	s.Parse = func(text string) (string, error) {
		list := strings.Split(strings.ReplaceAll(text, " ", ""), ",")
		slices.Sort(list)
		if slices.Equal(slices.Compact(list), []string{"0.0.0.0/0", "::/0"}) {
			return text, nil
		}
		return refuse(text)
	}
	s.Doc = doc + " Not supported yet, except 0.0.0.0/0,::/0: with any other value, the paths of the Ingress answer 503."
	return s
}

func refuse(string) (string, error) {
	return "", feature.NotImplemented("this setting, which controls access, is not supported yet")
}

// Feature denies routes with access control that is not supported.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "unsupported",
		Doc:      "Denies routes whose access control is not supported yet.",
		Settings: settings,
	}
}
