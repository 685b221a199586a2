// Package affinity keeps the requests of a session at one endpoint, by a cookie.
//
// The cookies are those of ingress-nginx, in both directions: a session that one of the two
// began stays where it is at the other one, as long as the endpoints stay.
package affinity

import (
	"embed"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
)

const (
	name = "affinity"

	byCookie   = "cookie"
	balanced   = "balanced"
	persistent = "persistent"

	defaultCookie = "INGRESSCOOKIE"
	maxCookie     = 200  // bytes of a cookie's name, and of its domain
	maxPath       = 1000 // bytes of its path
)

//go:embed *.lua
var lua embed.FS

// The settings of a backend: those of the oldest Ingress with the annotation affinity.
var (
	affinity = feature.Setting[string]{
		Annotation: "affinity", Parse: feature.Optional(parseType),
		Scope: feature.ScopeBackend, Merge: feature.MergeTogether, Leads: true, Risk: feature.Low,
		Doc: "With the value cookie, all requests of a session go to the same endpoint. The first response sets a cookie that says which one it is; " +
			"only paths of Ingresses with this annotation set it. It has precedence over upstream-hash-by and load-balance.",
	}
	mode = feature.Setting[string]{
		Annotation: "affinity-mode", Needs: bySession, Default: balanced, Parse: feature.Word(balanced, persistent),
		Scope: feature.ScopeBackend, Merge: feature.MergeTogether, Risk: feature.Medium,
		Doc: "balanced finds the endpoint of a session by a consistent hash: some sessions move to an endpoint that is added. " +
			"persistent: a session stays at its endpoint until that is gone. In both modes, an endpoint that is terminating keeps its sessions while it serves, and gets no new ones.",
	}
	cookieName = feature.Setting[string]{
		Annotation: "session-cookie-name", Needs: bySession, Default: defaultCookie, Parse: parseName,
		Scope: feature.ScopeBackend, Merge: feature.MergeTogether, Risk: feature.Medium,
		Doc: "The name of the cookie.",
	}
	changeOnFailure = feature.Setting[bool]{
		Annotation: "session-cookie-change-on-failure", Needs: bySession, Parse: feature.Bool,
		Scope: feature.ScopeBackend, Merge: feature.MergeTogether, Risk: feature.Low,
		Doc: "Moves a session to another endpoint if a try at its own one fails. By default, it is tried again at the same endpoint.",
	}
)

// The attributes of the cookie: those of the Ingress whose path sets it.
// bySession is what the other annotations of sessions act beside.
var bySession = feature.Needs(affinity, func(v feature.Values) bool { return affinity.Get(v) != "" })

var (
	cookiePath = feature.Setting[string]{
		Annotation: "session-cookie-path", Needs: bySession, Parse: withoutSpaces(`^[A-Za-z0-9._~/:,?&=-]*$`, maxPath, "must be at most 1000 letters, digits and -._~/:,?&="), Risk: feature.Medium,
		Doc: "The Path of the cookie. By default, it is the path of the rule, and / if that has special characters of regular expressions.",
	}
	cookieDomain = feature.Setting[string]{
		Annotation: "session-cookie-domain", Needs: bySession, Parse: withoutSpaces(`^[A-Za-z0-9._~/:-]*$`, maxCookie, "must be at most 200 letters, digits and -._~/:"), Risk: feature.Medium,
		Doc: "The Domain of the cookie.",
	}
	sameSite = feature.Setting[string]{
		Annotation: "session-cookie-samesite", Needs: bySession, Parse: feature.Optional(parseSameSite), Risk: feature.Low,
		Doc: "The SameSite attribute of the cookie.",
	}
	onlyIfRead = feature.Setting[bool]{
		Annotation: "session-cookie-conditional-samesite-none", Needs: bySession, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Leaves SameSite=None out for browsers that are known to read it as Strict, or to reject such a cookie.",
	}
	secure = feature.Setting[bool]{
		Annotation: "session-cookie-secure", Needs: bySession, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Adds Secure to the cookie on every response. By default, and with false, it is added to responses over https.",
	}
	expires = feature.Setting[json.Number]{
		Annotation: "session-cookie-expires", Needs: bySession, Parse: feature.Optional(parseSeconds), Risk: feature.Medium,
		Doc: "The time in seconds from the response until the date in the Expires attribute of the cookie.",
	}
	maxAge = feature.Setting[json.Number]{
		Annotation: "session-cookie-max-age", Needs: bySession, Parse: feature.Optional(parseSeconds), Risk: feature.Medium,
		Doc: "The Max-Age of the cookie, in seconds.",
	}
)

// Feature is session affinity.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Sends all requests of a session to the same endpoint of a backend.",
		Settings: []feature.AnySetting{
			affinity, mode, cookieName, changeOnFailure, cookiePath, cookieDomain, sameSite, onlyIfRead, secure, expires, maxAge,
		},
		Backend: backend,
		Route:   route,
		Lua:     lua,
	}
}

// settings is what picker.lua reads of a backend.
type settings struct {
	Cookie     string `json:"cookie"`
	Persistent bool   `json:"persistent,omitempty"`
	Moves      bool   `json:"moves,omitempty"`
}

func backend(v feature.Values, out *feature.BackendOut) {
	if affinity.Get(v) == byCookie {
		out.Balancing.Sessions = true
		out.Balancing.Picker = model.Policy{Feature: name, Value: settings{
			Cookie: cookieName.Get(v), Persistent: mode.Get(v) == persistent, Moves: changeOnFailure.Get(v),
		}}
	}
}

// policy is what affinity.lua reads of a route.
type policy struct {
	// Attributes are those of the cookie that do not depend on the request.
	Attributes string `json:"attributes"`
	// Secure is set where they have Secure.
	Secure bool `json:"secure,omitempty"`
	// None is set where SameSite=None is for the browsers that can read it.
	None bool `json:"none,omitempty"`
	// Expires is in seconds from the response.
	Expires json.Number `json:"expires,omitempty"`
}

// route has the path set cookies if its own Ingress has the annotation, even if the backend
// has the settings of another one: as in ingress-nginx.
func route(v feature.Values, out *feature.RouteOut) {
	if affinity.Get(v) != byCookie {
		return
	}
	p := policy{Secure: secure.Get(v), Expires: expires.Get(v)}
	var b strings.Builder
	add := func(attribute, value string) {
		if value != "" {
			b.WriteString("; " + attribute + "=" + value)
		}
	}
	path := cookiePath.Get(v)
	if path == "" {
		path = pathOf(out.Route)
	}
	add("Path", path)
	add("Domain", cookieDomain.Get(v))
	add("Max-Age", maxAge.Get(v).String())
	if p.Secure {
		b.WriteString("; Secure")
	}
	b.WriteString("; HttpOnly")
	if site := sameSite.Get(v); site == "None" && onlyIfRead.Get(v) {
		p.None = true
	} else {
		add("SameSite", site)
	}
	p.Attributes = b.String()
	feature.Add(out.Route, name, p)
	out.Route.Variant.HeaderFilter = true
}

// pathOf is a path that browsers send cookies back to from all paths of a route: they
// compare it with the path as it is written in the URL, element by element. A path with such
// characters may be a regular expression, which other Ingresses of the host can make it.
func pathOf(r *model.Route) string {
	path := r.Written()
	if strings.ContainsAny(path, `()[]{}^$*+?|\`) {
		return "/"
	}
	return strings.NewReplacer(";", "%3B", ",", "%2C").Replace(prediction.EscapePath(path))
}

func parseType(text string) (string, error) {
	if text != byCookie {
		return "", errors.New("must be cookie")
	}
	return text, nil
}

var parseCookieName = withoutSpaces(`^[A-Za-z0-9._~/:-]*$`, maxCookie, "must be at most 200 letters, digits and -._~/:")

func parseName(text string) (string, error) {
	cookie, err := parseCookieName(text)
	if cookie == "" {
		cookie = defaultCookie
	}
	return cookie, err
}

// withoutSpaces returns a parser that removes spaces before it compares, as ingress-nginx.
func withoutSpaces(expression string, length int, must string) func(string) (string, error) {
	parse := feature.Matching(expression, length, must)
	return func(text string) (string, error) { return parse(strings.ReplaceAll(text, " ", "")) }
}

// parseSameSite returns the attribute as browsers write it. ingress-nginx takes letters of
// either case, and sends only these.
func parseSameSite(text string) (string, error) {
	for _, site := range []string{"None", "Lax", "Strict"} {
		if strings.EqualFold(text, site) {
			return site, nil
		}
	}
	return "", errors.New("must be None, Lax or Strict")
}

// parseSeconds takes negative numbers too: they delete the cookie.
func parseSeconds(text string) (json.Number, error) {
	n, err := feature.Int(-1<<31, 1<<31-1)(text)
	if err != nil {
		return "", err
	}
	return json.Number(strconv.Itoa(n)), nil
}
