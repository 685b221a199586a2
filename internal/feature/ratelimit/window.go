package ratelimit

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/address"
	"github.com/headgate/headgate/internal/syntax/template"
)

const (
	// maxWindowLimit is less than what windows.lua can count.
	maxWindowLimit       = 10_000_000
	minWindow, maxWindow = time.Second, 24 * time.Hour
	tooMany              = 429
	// withStore is true with and without a store: lint and explain -f don't know of one.
	withStore = "with the flag --limit-store, the paths of this Ingress answer 503; without it, the annotation has no effect"
)

var (
	globalLimit = feature.Setting[int]{
		Annotation: "global-rate-limit", Parse: feature.Optional(feature.Int(0, maxWindowLimit)), OnInvalid: feature.Deny, When: hasStore, Denial: withStore, Risk: feature.Low,
		Doc: "Maximum number of requests of a client in global-rate-limit-window to all replicas of Headgate together. All paths of the Ingress count together. " +
			"0: no limit. It has no effect without the flag --limit-store.",
	}
	globalWindow = feature.Setting[time.Duration]{
		Annotation: "global-rate-limit-window", Needs: byGlobalLimit, Parse: feature.Optional(parseWindow), OnInvalid: feature.Deny, When: hasStore, Denial: withStore, Risk: feature.Low,
		Doc: "The time for global-rate-limit, such as 1m. Without it, that has no effect.",
	}
	globalKey = feature.Setting[clientKey]{
		Annotation: "global-rate-limit-key", Needs: byGlobalLimit, Default: clientKey{text: "$remote_addr"}, Parse: parseKey, OnInvalid: feature.Deny, When: hasStore, Denial: withStore, Risk: feature.High,
		Doc: "What a client is for global-rate-limit: a text, usually with variables. Requests for which it is empty are not limited.",
	}
	globalIgnored = feature.Setting[*address.Networks]{
		Annotation: "global-rate-limit-ignored-cidrs", Needs: byGlobalLimit, Parse: address.ParseNetworks, OnInvalid: feature.Deny, When: hasStore, Denial: withStore, Risk: feature.Medium,
		Doc: "The addresses and networks of clients that global-rate-limit does not limit, separated by commas.",
	}
	globalStatus = feature.Setting[int]{
		Key: "global-rate-limit-status-code", Default: tooMany, Parse: feature.Int(minStatus, maxStatus),
		Doc: "The status of requests that global-rate-limit refuses.",
	}
)

// hasStore reports whether the settings can have an effect.
// byGlobalLimit is what the other annotations of limits over all replicas act beside.
var byGlobalLimit = feature.Needs(globalLimit, func(v feature.Values) bool { return globalLimit.Get(v) > 0 })

func hasStore(v feature.Values) bool { return v.Has(feature.LimitStore) }

// A window is a limit over all replicas, as windows.lua counts it.
type window struct {
	Limit   int               `json:"limit"`
	Seconds int               `json:"seconds"`
	Status  int               `json:"status"`
	Key     template.Template `json:"key,omitempty"`
	Allow   string            `json:"allow,omitempty"`

	allow *address.Networks
	by    string
}

// overReplicas is the limit over all replicas, nil for none.
func overReplicas(v feature.Values, out *feature.RouteOut) *window {
	w := &window{
		Limit: globalLimit.Get(v), Seconds: int(globalWindow.Get(v) / time.Second), Status: globalStatus.Get(v),
		Key: globalKey.Get(v).template, by: globalKey.Get(v).text, allow: globalIgnored.Get(v),
	}
	const noEffect = "it has no effect"
	switch {
	case w.Limit == 0:
		return nil
	case w.Seconds == 0 && v.Rejects(globalWindow):
		return nil // and a finding says why
	case w.Seconds == 0:
		out.Ignore(globalLimit, finding.InvalidValue, globalWindow.Annotation+" must be set too, to a time such as 1m", noEffect)
		return nil
	case !hasStore(v):
		out.Ignore(globalLimit, finding.MissingCapability, "limits over all replicas need a store: Headgate's flag --limit-store is not set", noEffect)
		return nil
	}
	if w.allow.String() != "" {
		w.Allow = feature.Attach(out.Route, w.allow.Content())
	}
	return w
}

// parseWindow reads a time as Go writes it, as ingress-nginx does.
func parseWindow(text string) (time.Duration, error) {
	window, err := time.ParseDuration(text)
	if err != nil || window < minWindow || window > maxWindow || window%time.Second != 0 {
		return 0, errors.New("must be whole seconds from 1s to 24h, such as 30s, 1m or 1h30m")
	}
	return window, nil
}

// why says what the limit may refuse to a client.
func (w *window) why(from netip.Addr) string {
	if w == nil || w.Allow != "" && from.IsValid() && w.allow.Has(from) {
		return ""
	}
	why := fmt.Sprintf("%d if the client sends more than %d requests in %v to all replicas (%s; needs the flag --limit-store)", w.Status, w.Limit, time.Duration(w.Seconds)*time.Second, globalLimit.Annotation)
	if w.Key != nil {
		why += whoIs(w.by, globalKey.Annotation)
	}
	if w.Allow != "" && !from.IsValid() {
		why += unless(globalIgnored.Annotation)
	}
	return why
}
