// Package addresslist allows and denies clients by their addresses.
package addresslist

import (
	"embed"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/address"
)

const name = "address_list"

//go:embed *.lua
var lua embed.FS

var (
	allowlist = feature.Setting[*address.Networks]{
		Annotation: "allowlist-source-range", Key: "whitelist-source-range", Parse: address.ParseNetworks, OnInvalid: feature.Deny, Risk: feature.Medium,
		Doc: "The addresses and networks of the clients that are allowed, separated by commas. Others get 403. The annotation replaces the list of the key.",
	}
	whitelist = feature.Setting[*address.Networks]{
		Annotation: "whitelist-source-range", Parse: address.ParseNetworks, OnInvalid: feature.Deny, When: asksWhitelist, Risk: feature.Medium,
		Doc: "The old name of allowlist-source-range. It is used if that is not set, or empty.",
	}
	denylist = feature.Setting[*address.Networks]{
		Annotation: "denylist-source-range", Key: "denylist-source-range", Parse: address.ParseNetworks, OnInvalid: feature.Deny, Risk: feature.Medium,
		Doc: "The addresses and networks of the clients that get 403, separated by commas, even if allowlist-source-range has them. The annotation replaces the list of the key.",
	}
)

// Feature is lists of clients' addresses.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Allows and denies clients by their addresses.",
		Settings: []feature.AnySetting{allowlist, whitelist, denylist},
		Route:    route,
		Predict:  prediction.ByPhase{prediction.AuthPhase: predict},
		Lua:      lua,
	}
}

// policy is what address_list.lua reads of a route.
type policy struct {
	// Allow and Deny are the names of contents, see address.Networks.
	Allow string `json:"allow,omitempty"`
	Deny  string `json:"deny,omitempty"`

	allow, deny listed
}

// A listed is a list and the setting that has it.
type listed struct {
	list *address.Networks
	by   string
}

// asksWhitelist reports whether the old name counts.
func asksWhitelist(v feature.Values) bool {
	return !v.IsSet(allowlist) || allowlist.Get(v).IsEmpty()
}

func route(v feature.Values, out *feature.RouteOut) {
	setting := allowlist
	if asksWhitelist(v) && v.IsSet(whitelist) {
		setting = whitelist
	}
	allow, deny := setting.Get(v), denylist.Get(v)
	for _, s := range []feature.Setting[*address.Networks]{setting, denylist} {
		// As in ingress-nginx: it is more likely a mistake than the wish to have no list.
		if v.IsSet(s) && s.Get(v).IsEmpty() {
			out.Deny(s, finding.InvalidValue, `invalid value "": `+address.NetworksForm)
		}
	}
	p := policy{allow: listed{allow, setting.Annotation}, deny: listed{deny, denylist.Annotation}}
	if allow.String() != "" {
		p.Allow = feature.Attach(out.Route, allow.Content())
	}
	if deny.String() != "" {
		p.Deny = feature.Attach(out.Route, deny.Content())
	}
	if p.Allow != "" || p.Deny != "" {
		feature.Add(out.Route, name, p)
	}
}

// predict decides as address_list.lua does.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	switch {
	case !q.From.IsValid():
		lists := p.allow.by
		if p.Allow == "" {
			lists = p.deny.by
		} else if p.Deny != "" {
			lists += ", " + p.deny.by
		}
		// Without an allowlist, no address lets a client in where one auth check is enough.
		return prediction.Answer{Neutral: p.Allow == "", Why: "this depends on the client's address (" + lists + ")"}
	case p.Deny != "" && p.deny.list.Has(q.From):
		return prediction.Answer{Status: 403, Why: fmt.Sprintf("%s is in %s: %s", q.From, p.deny.by, p.deny.short())}
	case p.Allow != "" && !p.allow.list.Has(q.From):
		return prediction.Answer{Status: 403, Why: fmt.Sprintf("%s is not in %s: %s", q.From, p.allow.by, p.allow.short())}
	case p.Allow == "":
		return prediction.Answer{Neutral: true}
	}
	return prediction.Answer{}
}

// short is the list, for a sentence.
func (l listed) short() string { return finding.ShortenList(strings.Split(l.list.String(), ",")) }
