package redirect

import (
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

// foretell is redirect.lua's function route in Go.
func foretell(q feature.Question) feature.Foretold {
	p, _ := q.Policy.(policy)
	if p.Root != nil {
		if q.Path != "/" {
			return feature.Foretold{}
		}
		path := feature.EscapePath(p.Root.Foretell(q, func(string) (string, bool) { return "", true }))
		return feature.Foretold{Status: 302, Location: q.Scheme + "://" + q.Authority + path, Why: "app-root names it"}
	}
	target := p.To
	if strings.HasPrefix(target, "/") && !q.Relative {
		target = q.Scheme + "://" + q.HostName + target
	}
	return feature.Foretold{Status: p.Code, Location: target, Why: "permanent-redirect or temporal-redirect names it"}
}
