// Package adminsnippet puts lines of the administrator into nginx.conf.
package adminsnippet

import (
	"embed"
	"fmt"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

const name = "adminsnippet"

//go:embed *.lua
var lua embed.FS

const more = " NGINX tests them before they go live. See [snippets.md](snippets.md)."

var settings = map[model.Place]feature.Setting[model.AdminText]{
	model.InMain:     key(model.InMain, "Lines of nginx.conf outside of all blocks, such as `load_module` and `env`."),
	model.InHTTP:     key(model.InHTTP, "Lines of the block `http`, such as `map`, `geo`, `limit_req_zone` and servers of their own."),
	model.InServer:   key(model.InServer, "Lines of the block `server`, of all hosts. `if`, `return` and `rewrite` come before Headgate looks for a host, and locations have precedence over Ingresses."),
	model.InLocation: key(model.InLocation, "Lines of each location that asks backends."),
}

func key(place model.Place, doc string) feature.Setting[model.AdminText] {
	return feature.Setting[model.AdminText]{Key: string(place), Parse: model.NewAdminText, Scope: feature.ScopeProcess, Doc: doc + more}
}

// Feature is the snippets of the administrator.
func Feature() feature.Feature {
	f := feature.Feature{
		Name: name,
		Doc:  "Lines of the administrator in nginx.conf.",
		Process: func(v feature.Values, out *feature.ProcessOut) {
			for place, s := range settings {
				*out.Process.Snippets.At(place) = s.Get(v)
			}
			for _, text := range feature.Defined(v).Variables {
				if name, ok := model.NewAdminName(text); ok {
					out.Process.Defined = append(out.Process.Defined, name)
				}
			}
		},
		Refused: refused,
		Predict: prediction.ByPhase{prediction.AdmitPhase: predict},
		Lua:     lua,
	}
	for _, place := range model.Places() {
		if s, is := settings[place]; is {
			f.Settings = append(f.Settings, s)
		}
	}
	return f
}

// policy is what adminsnippet.lua reads.
type policy struct {
	// Refused is the key of a text, or "template", that may control access, and that NGINX does not have.
	Refused string `json:"refused"`
}

// predict is for explain: all requests are refused.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Global.(policy)
	return prediction.Answer{Status: 503, Why: p.Refused + " is refused and may control access"}
}

// refused reports the texts that NGINX does not have as they are. If one of these may control
// access, and no earlier one does, no request is served.
func refused(v feature.Values, refusals feature.Refusals, out *feature.ProcessOut) {
	for _, place := range model.Places() {
		r, is := refusals[place]
		if !is {
			continue
		}
		if place == model.InTemplate {
			if !r.Kept {
				out.Denied = true
				out.Policy = policy{Refused: string(place)}
			}
			continue
		}
		code, message := finding.InvalidValue, r.Reason
		if r.Line > 0 {
			message = fmt.Sprintf("line %d: %s", r.Line, r.Reason)
		}
		if r.Waits {
			code = finding.Waits
		}
		s := settings[place]
		switch {
		case r.Kept && mayGuard(place, s.Get(v)):
			out.Warn(s, code, message, feature.KeptUntilStart)
		case r.Kept:
			out.Warn(s, code, message, "what was there before stays, until Headgate is started again")
		case mayGuard(place, s.Get(v)):
			out.Deny(s, code, message+"; it may control access")
			out.Policy = policy{Refused: string(place)}
		default:
			out.Warn(s, code, message, "it has no effect")
		}
	}
}

// mayGuard reports whether requests may pass only with a text. What is outside of all blocks defines
// no more than what others use.
func mayGuard(place model.Place, text model.AdminText) bool {
	return place != model.InMain && nginxsyntax.MayGuard(text.String(), place == model.InHTTP)
}
