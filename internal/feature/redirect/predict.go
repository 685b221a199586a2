package redirect

import (
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

// predict is redirect.lua's function rewrite in Go.
func predict(q feature.SimulatedRequest) feature.Prediction {
	p, _ := q.Policy.(policy)
	if p.Root != nil {
		if q.Path != "/" {
			return feature.Prediction{}
		}
		path := feature.EscapePath(feature.Predict(p.Root, q, func(string) (string, bool) { return "", true }))
		return feature.Prediction{Status: 302, Location: q.Scheme + "://" + q.Authority + path, Why: "app-root sets the target"}
	}
	target := p.To
	if strings.HasPrefix(target, "/") && !q.Relative {
		target = q.Scheme + "://" + q.HostName + target
	}
	return feature.Prediction{Status: p.Code, Location: target, Why: "permanent-redirect or temporal-redirect sets the target"}
}
