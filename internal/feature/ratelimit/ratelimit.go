// Package ratelimit limits the requests and connections of each client, and the rate of
// responses.
package ratelimit

import (
	"embed"
	"fmt"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/syntax/address"
)

const name = "rate_limit"

//go:embed *.lua
var lua embed.FS

const (
	// maxLimit is far above what an instance can serve, and exact in Lua's numbers.
	maxLimit = 1_000_000_000
	// maxRate is in KiB.
	maxRate = 1 << 30
	kib     = 1 << 10

	minStatus, maxStatus, defaultStatus = 400, 599, 503
	defaultMultiplier                   = 5
)

var (
	connections = limit("limit-connections", "Maximum number of requests of a client that are in progress at the same time.")
	perSecond   = limit("limit-rps", "Maximum number of requests of a client per second. Beyond it, as many as this times limit-burst-multiplier may come at once.")
	perMinute   = limit("limit-rpm", "The same per minute. Both limits apply.")
	multiplier  = feature.Setting[int]{
		Annotation: "limit-burst-multiplier", Needs: feature.Needs(perSecond, limitsRequests), Default: defaultMultiplier, Parse: feature.Int(0, maxLimit), Risk: feature.Low,
		Doc: "How many times the number of limit-rps, and of limit-rpm, a client may send at once.",
	}
	allowlist = feature.Setting[*address.Networks]{
		Annotation: "limit-allowlist", Needs: byLimit, Parse: address.ParseNetworks, OnInvalid: feature.Deny, Risk: feature.Low,
		Doc: "The addresses and networks of clients that are not limited, separated by commas.",
	}
	whitelist = feature.Setting[*address.Networks]{
		Annotation: "limit-whitelist", Needs: byLimit, Parse: address.ParseNetworks, OnInvalid: feature.Deny, When: asksWhitelist, Risk: feature.Low,
		Doc: "The old name of limit-allowlist. It is used if that is not set, or empty.",
	}
	rate = feature.Setting[int]{
		Annotation: "limit-rate", Key: "limit-rate", Parse: feature.Int(-maxRate, maxRate), Risk: feature.Low,
		Doc: "The rate of a response to the client, in KiB a second, with proxy-buffering: on. 0: no limit.",
	}
	rateAfter = feature.Setting[int]{
		Annotation: "limit-rate-after", Needs: feature.Needs(rate, func(v feature.Values) bool { return rate.Get(v) > 0 }), Key: "limit-rate-after", Parse: feature.Int(-maxRate, maxRate), Risk: feature.Low,
		Doc: "How much of a response, in KiB, is sent before limit-rate applies.",
	}
	requestStatus    = status("limit-req-status-code", "limit-rps and limit-rpm")
	connectionStatus = status("limit-conn-status-code", "limit-connections")
	clientBy         = feature.Setting[clientKey]{
		Key: "limit-conn-zone-variable", Default: clientKey{text: "$binary_remote_addr"}, Parse: parseClientKey,
		Doc: "What a client is for limit-connections, limit-rps and limit-rpm: a text with variables. Requests for which it is empty are not limited.",
	}
)

// byLimit is what lists of clients that are not limited act beside.
var byLimit = feature.Need{Setting: perSecond, What: "limit-rps, limit-rpm or limit-connections", Met: func(v feature.Values) bool {
	return limitsRequests(v) || connections.Get(v) > 0
}}

func limitsRequests(v feature.Values) bool { return perSecond.Get(v) > 0 || perMinute.Get(v) > 0 }

func limit(annotation, doc string) feature.Setting[int] {
	return feature.Setting[int]{
		Annotation: annotation, Parse: feature.Optional(parseLimit), OnInvalid: feature.Deny, Risk: feature.Low,
		Doc: doc + " All paths of the Ingress count together, in each replica of Headgate. 0 and less: no limit.",
	}
}

// parseLimit reads a number. A limit of 0 and less is none, as in ingress-nginx.
func parseLimit(text string) (int, error) {
	number, err := feature.Int(-maxLimit, maxLimit)(text)
	if err != nil {
		return 0, fmt.Errorf("must be a whole number such as 10, at most %d; 0 for no limit", maxLimit)
	}
	return number, nil
}

func status(key, of string) feature.Setting[int] {
	return feature.Setting[int]{
		Key: key, Default: defaultStatus, Parse: feature.Int(minStatus, maxStatus),
		Doc: "The status of requests that " + of + " refuse.",
	}
}

// asksWhitelist reports whether the old name counts.
func asksWhitelist(v feature.Values) bool {
	return !v.IsSet(allowlist) || allowlist.Get(v).IsEmpty()
}

// Feature is the limits of clients.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Limits the requests and connections of clients, and the rate of responses.",
		Settings: []feature.AnySetting{
			connections, perSecond, perMinute, multiplier, allowlist, whitelist, rate, rateAfter,
			requestStatus, connectionStatus, clientBy,
			globalLimit, globalWindow, globalKey, globalIgnored, globalStatus,
		},
		Route:   route,
		Predict: prediction.ByPhase{prediction.LimitPhase: predict},
		Lua:     lua,

		CountsTogether: true,
		Resources: resource.Resources{
			// The counters of clients, see owners.lua.
			Dictionaries: []resource.Dictionary{
				{Name: resource.NewName("hg_buckets"), Size: 64 << 20},
				{Name: resource.NewName("hg_connections"), Size: 32 << 20},
				// Those of windows.lua.
				{Name: resource.NewName("hg_windows"), Size: 64 << 20},
			},
			InitWorker: []resource.Handler{resource.NewHandler("headgate.feature.rate_limit.connections", "init_worker")},
		},
	}
}
