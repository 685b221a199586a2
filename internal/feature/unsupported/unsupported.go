// Package unsupported denies what Headgate can't guard yet: routes whose
// annotations ask for access control that no other feature has answer 503. To
// pass them over would open what their owner believes to be closed.
//
// An annotation leaves this list when a feature takes it over.
package unsupported

import (
	"errors"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

var guards = []feature.Setting[string]{
	guard("auth-type", "Asks for a password."),
	guard("auth-url", "Asks another service whether to let a request in."),
	guard("auth-tls-secret", "Asks for a client's certificate."),
	guard("allowlist-source-range", "Lets only some addresses in."),
	guard("whitelist-source-range", "The old name of allowlist-source-range."),
	guard("denylist-source-range", "Keeps some addresses out."),
}

func guard(annotation, doc string) feature.Setting[string] {
	return feature.Setting[string]{
		Annotation: annotation, Parse: refuse, OnInvalid: feature.Deny, Risk: feature.Low,
		Doc: doc + " Not supported yet: its paths answer 503.",
	}
}

func refuse(string) (string, error) {
	return "", errors.New("this access control is not supported yet")
}

// Feature denies routes with access control that is not supported.
func Feature() feature.Feature {
	settings := make([]feature.Declared, len(guards))
	for i, g := range guards {
		settings[i] = g
	}
	return feature.Feature{
		Name:     "unsupported",
		Doc:      "Denies routes whose access control is not supported yet.",
		Settings: settings,
		Route: func(r *feature.Reader, _ *model.Route) {
			for _, g := range guards {
				g.Get(r)
			}
		},
	}
}
