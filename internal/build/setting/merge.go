package setting

import (
	"fmt"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Resolve merges what the Ingresses that share a host or a backend, the oldest
// first, say of it. It is the only place where an Ingress decides over what is not
// its own. Unit names the host or backend in findings.
func (r *Reader) Resolve(scope feature.Scope, unit string, owners []*feature.Parsed, config *feature.Config) (feature.Merged, []finding.Finding) {
	m := r.Schema.Merge(scope, config, owners, DeniesAll(unit))
	fs := Findings("", m.Problems)
	for _, c := range m.Conflicts {
		fs = append(fs, finding.Finding{
			Object: spec.OriginName(c.Loser), Field: c.Field, Code: finding.Conflict,
			Message: fmt.Sprintf("%s, which is older, decides for %s", spec.OriginName(c.Winner), unit),
			Effect:  "this annotation has no effect for that " + scope.String(),
		})
	}
	return m, fs
}

// DeniesAll is the effect of what denies a whole host or backend.
func DeniesAll(unit string) string { return "all requests for " + unit + " are answered 503" }

// Findings are about the Ingress that a problem is of, and about the object where
// it is of none.
func Findings(object string, problems []feature.Problem) []finding.Finding {
	fs := make([]finding.Finding, len(problems))
	for i, p := range problems {
		fs[i] = finding.Finding{Object: object, Field: p.Field, Code: p.Code, Message: p.Message, Effect: p.Effect}
		if p.Ingress != (model.Origin{}) {
			fs[i].Object = spec.OriginName(p.Ingress)
		}
	}
	return fs
}
