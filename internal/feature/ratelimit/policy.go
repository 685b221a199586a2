package ratelimit

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/address"
	"github.com/headgate/headgate/internal/syntax/template"
)

// policy is what rate_limit.lua reads of a route.
type policy struct {
	// ID identifies the Ingress in the keys of counters.
	ID string `json:"id,omitempty"`
	// Buckets are limit-rps and limit-rpm.
	Buckets []bucket `json:"buckets,omitempty"`
	// Status and ConnectionStatus are of what is refused.
	Status           int `json:"status,omitempty"`
	Connections      int `json:"connections,omitempty"`
	ConnectionStatus int `json:"connection_status,omitempty"`
	// Key is what a client is; without it, its address.
	Key template.Template `json:"key,omitempty"`
	// Allow is the name of the list of clients that are not limited.
	Allow string `json:"allow,omitempty"`
	// Window is the limit over all replicas.
	Window *window `json:"window,omitempty"`
	// Rate and RateAfter are in bytes.
	Rate      int `json:"rate,omitempty"`
	RateAfter int `json:"rate_after,omitempty"`

	allow     *address.Networks
	allowedBy string
	// by is the text of Key.
	by string
}

// A bucket leaks a request each Cost milliseconds.
type bucket struct {
	// Kind is a letter in the keys of counters.
	Kind string `json:"kind"`
	// Cost is 1000 / Rate, and Rate in thousandths of a request a second, as NGINX rounds it.
	Rate int `json:"rate"`
	// Burst is in requests.
	Burst int `json:"burst"`

	number       int
	by, interval string
}

// perRequest is what a request is in NGINX's arithmetic.
const perRequest = 1000

const secondsPerMinute = 60

func route(v feature.Values, out *feature.RouteOut) {
	p := policy{Buckets: buckets(v), Connections: max(0, connections.Get(v))}
	if p.Buckets != nil {
		p.Status = requestStatus.Get(v)
	}
	if p.Connections > 0 {
		p.ConnectionStatus = connectionStatus.Get(v)
	}
	if p.Window = overReplicas(v, out); p.Window != nil {
		p.ID = id(v.Origin())
	}
	if p.Buckets != nil || p.Connections > 0 {
		p.ID, p.Key, p.by = id(v.Origin()), clientBy.Get(v).template, clientBy.Get(v).text
		p.allow, p.allowedBy = allowlist.Get(v), allowlist.Annotation
		if asksWhitelist(v) && v.IsSet(whitelist) {
			p.allow, p.allowedBy = whitelist.Get(v), whitelist.Annotation
		}
		if p.allow.String() != "" {
			p.Allow = feature.Attach(out.Route, p.allow.Content())
		}
	}
	if kilobytes := rate.Get(v); kilobytes > 0 {
		p.Rate, p.RateAfter = kilobytes*kib, max(0, rateAfter.Get(v))*kib
	}
	if p.Rate > 0 || p.ID != "" {
		feature.Add(out.Route, name, p)
	}
}

// buckets are the limits that are set.
func buckets(v feature.Values) (list []bucket) {
	burst := multiplier.Get(v)
	if n := perSecond.Get(v); n > 0 {
		list = append(list, bucket{Kind: "s", Rate: n * perRequest, Burst: n * burst, number: n, by: perSecond.Annotation, interval: "second"})
	}
	if n := perMinute.Get(v); n > 0 {
		list = append(list, bucket{Kind: "m", Rate: n * perRequest / secondsPerMinute, Burst: n * burst, number: n, by: perMinute.Annotation, interval: "minute"})
	}
	return list
}

// idBytes make it unlikely that another Ingress of any namespace has the same ID.
const idBytes = 9

func id(o model.Origin) string {
	sum := sha256.Sum256([]byte(o.Namespace + "/" + o.Ingress))
	return base64.RawStdEncoding.EncodeToString(sum[:idBytes])
}

// predict says what may be refused.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	return prediction.Answer{Why: strings.Join(slices.DeleteFunc([]string{p.why(q.From), p.Window.why(q.From)}, func(why string) bool { return why == "" }), "; ")}
}

// why says what the limits of this replica may refuse to a client.
func (p policy) why(from netip.Addr) string {
	if p.Allow != "" && from.IsValid() && p.allow.Has(from) {
		return ""
	}
	var whys []string
	for _, b := range p.Buckets {
		whys = append(whys, fmt.Sprintf("%d if the client sends more than %d requests per %s, and %d more at once (%s)", p.Status, b.number, b.interval, b.Burst, b.by))
	}
	if p.Connections > 0 {
		whys = append(whys, fmt.Sprintf("%d if the client's requests in progress are more than %d (%s)", p.ConnectionStatus, p.Connections, connections.Annotation))
	}
	if whys == nil {
		return ""
	}
	why := strings.Join(whys, "; ")
	if p.Key != nil {
		why += whoIs(p.by, clientBy.Key)
	}
	if p.Allow != "" && !from.IsValid() {
		why += unless(p.allowedBy)
	}
	return why
}

func whoIs(client, by string) string {
	return "; a client is who has the same " + finding.Shorten(client) + ", and without one is not limited (" + by + ")"
}

func unless(by string) string { return "; unless the client's address is in " + by }

// A clientKey is a text with variables. Without a template it is the client's address.
type clientKey struct {
	text     string
	template template.Template
}

func (k clientKey) String() string { return k.text }

// maxKey bounds the text, in bytes.
const maxKey = 1000

func parseClientKey(text string) (clientKey, error) {
	if !strings.Contains(text, "$") {
		return clientKey{}, errors.New("must contain a variable, such as $binary_remote_addr or $http_x_api_key")
	}
	return parseKey(text)
}

// parseKey is the same for a text that need not have variables: all clients are then one.
func parseKey(text string) (clientKey, error) {
	plain := strings.NewReplacer("$binary_remote_addr", "$remote_addr", "${binary_remote_addr}", "$remote_addr", "${remote_addr}", "$remote_addr").Replace(text)
	switch {
	case len(text) > maxKey:
		return clientKey{}, fmt.Errorf("must be at most %d bytes", maxKey)
	case plain == "$remote_addr":
		return clientKey{text: text}, nil
	}
	template, err := template.Parse(plain, false)
	return clientKey{text, template}, err
}
