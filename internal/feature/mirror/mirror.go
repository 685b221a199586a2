// Package mirror sends a copy of each request to another service, a mirror.
//
// The copy is made when the request may pass and its body is there, and mirror.lua sends
// it apart from the request: no answer waits for a mirror, and none depends on it.
package mirror

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"strings"

	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

const name = "mirror"

//go:embed *.lua
var lua embed.FS

var (
	mirrorTarget = feature.Setting[target]{
		Annotation: "mirror-target", Parse: feature.Optional(parseTarget), Risk: feature.High,
		Doc: "The URL of a service that gets a copy of each request, with variables in path and query. Its responses are dropped, and no request waits for it. " +
			"A request that is refused is not copied. Without a path, the copy has that of the request; without a variable, its query.",
	}
	mirrorHost = feature.Setting[template.Template]{
		Annotation: "mirror-host", Needs: feature.Needs(mirrorTarget, mirrors), Parse: feature.Optional(parseHost), When: mirrors, Risk: feature.High,
		Doc: "The Host header of copies. It can contain variables. The default is the host of mirror-target, without the port.",
	}
	mirrorBody = feature.Setting[bool]{
		Annotation: "mirror-request-body", Needs: feature.Needs(mirrorTarget, mirrors), Default: true, Parse: feature.Either("on", "off"), When: mirrors, Risk: feature.Low,
		Doc: "Whether copies have the body of the request. If they do, the whole body is read before the backend gets the request, even if proxy-request-buffering is off.",
	}
)

func mirrors(v feature.Values) bool { return mirrorTarget.Get(v).text != "" }

// Feature is mirror-target.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Sends copies of requests to another service.",
		// A problem of the mirror's backend is reported at the first one.
		Settings: []feature.AnySetting{mirrorTarget, mirrorHost, mirrorBody},
		Route:    route,
		Calls:    calls,
		Lua:      lua,
	}
}

func calls(v feature.Values) []model.Call {
	if !mirrors(v) {
		return nil
	}
	return []model.Call{mirrorTarget.Get(v).call}
}

// policy is what mirror.lua reads of a route.
type policy struct {
	// ID is the same for the same target. A copy carries it, so that one that leads to
	// itself ends.
	ID      string `json:"id"`
	Backend string `json:"backend"`
	Secure  bool   `json:"secure,omitempty"`
	// Name is sent by SNI, and Host as the Host header where there is no Header.
	Name   string            `json:"name,omitempty"`
	Host   string            `json:"host"`
	Header template.Template `json:"header,omitempty"`
	URI    template.Template `json:"uri"`
	// PathVaries is set where the path of the URI depends on the request.
	PathVaries bool `json:"path_varies,omitempty"`
	Body       bool `json:"body,omitempty"`
}

func route(v feature.Values, out *feature.RouteOut) {
	if !mirrors(v) {
		return
	}
	to := mirrorTarget.Get(v)
	body := mirrorBody.Get(v)
	// Lua can read a body only if it was Lua that had NGINX read it, in the access phase.
	out.Route.Profile.Access = out.Route.Profile.Access || body
	sum := sha256.Sum256([]byte(to.text))
	p := policy{
		ID: hex.EncodeToString(sum[:10]), Backend: to.call.Backend(), Secure: to.call.Secure, Host: strings.TrimSuffix(to.call.Host, "."),
		Header: mirrorHost.Get(v), URI: to.uri, PathVaries: to.pathVaries, Body: body,
	}
	if _, isAddress := model.Address(to.call.Host); p.Secure && !isAddress {
		p.Name = p.Host
	}
	feature.Add(out.Route, name, p)
}
