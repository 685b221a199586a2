package redirect

import (
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
)

// predict is redirect.lua's function rewrite in Go.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	if p.Root != nil {
		if q.Path != "/" {
			return prediction.Answer{}
		}
		target := prediction.EscapePath(prediction.Expand(p.Root, q, func(string) (string, bool) { return "", true }))
		if !q.Relative {
			target = q.Scheme + "://" + q.Authority + target
		}
		return prediction.Answer{Status: 302, Location: target, Why: "app-root sets the target"}
	}
	target := p.To
	if strings.HasPrefix(target, "/") && !q.Relative {
		target = q.Scheme + "://" + q.HostName + target
	}
	return prediction.Answer{Status: p.Code, Location: target, Why: "permanent-redirect or temporal-redirect sets the target"}
}
