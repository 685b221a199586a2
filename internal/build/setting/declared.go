package setting

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// Calls are the services that routes with these settings ask besides their
// backends.
func (r *Reader) Calls(v feature.Values) []model.Call {
	var list []model.Call
	for _, f := range r.features {
		if f.Calls != nil {
			list = append(list, f.Calls(v)...)
		}
	}
	return list
}

// Canary reports whether an Ingress is a canary, and by which feature, even if
// the administrator forbids it: it makes no routes. The name is empty if it is
// not one. Effect is that of problems with it.
func (r *Reader) Canary(p *feature.Parsed, effect string) (name string, when any, report feature.Report) {
	report = feature.NewReport(p.Written(), effect)
	for _, f := range r.features {
		if f.Canary == nil {
			continue
		}
		if when, ok := f.Canary(p.Written(), &report); ok {
			return f.Name, when, report
		}
	}
	return "", nil, report
}
