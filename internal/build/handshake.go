package build

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A handshakeSetting is an annotation that is a setting of a host's TLS
// connections.
type handshakeSetting struct {
	annotation string // the whole name
	feature.Declared
}

// handshake is what the Ingresses of a host, the oldest first, say of its TLS
// connections besides its groups: of each annotation the first good value
// counts. Ingresses that ask for something else are told.
func (l *layout) handshake(parts []*part) model.TLSPolicy {
	counts := map[string]string{}
	for _, s := range l.builder.ofHandshakes {
		var owner *part
		for _, p := range parts {
			text := strings.TrimSpace(p.Annotations[s.annotation])
			switch {
			case text == "" || p.reader.Forbidden() || !l.goodHandshake(p, s.annotation):
			case owner == nil:
				owner, counts[s.annotation] = p, text
			case !s.Equal(p.reader, owner.reader):
				l.findings = append(l.findings, finding.Finding{
					Object: objectName(p.Ingress), Field: s.annotation, Code: finding.Conflict,
					Message: fmt.Sprintf("host %s is served by %s too, which is older and decides over it", l.host, objectName(owner.Ingress)),
					Effect:  "this annotation does nothing for that host",
				})
			}
		}
	}
	policy := l.grouped
	if len(counts) > 0 {
		l.builder.readHandshake(feature.NewReader(l.builder.prefix, counts, l.config), &policy)
	}
	return policy
}

// goodHandshake tells whether the value that an Ingress has of the annotation
// is good. A bad one is noted by its reader.
func (l *layout) goodHandshake(p *part, annotation string) bool {
	l.builder.readHandshake(p.reader, &model.TLSPolicy{})
	return !slices.ContainsFunc(p.reader.Problems(), func(problem feature.Problem) bool { return problem.Field == annotation })
}

func (b *Builder) readHandshake(r *feature.Reader, policy *model.TLSPolicy) {
	for _, f := range b.features {
		if f.Handshake != nil && f.Group == nil {
			f.Handshake(r, policy)
		}
	}
}
