// Package block refuses requests of clients before they are routed, by the keys of the
// administrator: by their addresses, User-Agent and Referer.
package block

import (
	"embed"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/address"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

const name = "block"

//go:embed *.lua
var lua embed.FS

var (
	cidrs = feature.Setting[*address.Networks]{
		Key: "block-cidrs", Parse: address.ParseNetworks, OnInvalid: feature.Deny, Scope: feature.ScopeProcess,
		Doc: "Addresses and networks whose requests get 403, separated by commas: for all hosts and paths, also those whose Ingresses allow them.",
	}
	userAgents = feature.Setting[texts]{
		Key: "block-user-agents", Parse: parseTexts, OnInvalid: feature.Deny, Scope: feature.ScopeProcess,
		Doc: "Values of the header User-Agent whose requests get 403, separated by commas. An entry is the whole value, in any case, or a regular expression behind ~ (or ~*, which ignores the case).",
	}
	referers = feature.Setting[texts]{
		Key: "block-referers", Parse: parseTexts, OnInvalid: feature.Deny, Scope: feature.ScopeProcess,
		Doc: "Values of the header Referer whose requests get 403, as in block-user-agents.",
	}
)

// Feature is what keeps clients out of everything.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Refuses requests before they are routed.",
		Settings: []feature.AnySetting{cidrs, userAgents, referers},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			p := policy{UserAgents: userAgents.Get(v).policy(), Referers: referers.Get(v).policy()}
			if list := cidrs.Get(v); list.String() != "" {
				p.Networks, p.networks = list.Content().Bytes, list
			}
			if p.Networks != nil || p.UserAgents != nil || p.Referers != nil {
				out.Policy = p
			}
		},
		Predict: prediction.ByPhase{prediction.AdmitPhase: predict},
		Lua:     lua,
	}
}

// policy is what block.lua reads.
type policy struct {
	// Networks are an address.Networks, in base64.
	Networks   []byte     `json:"networks,omitempty"`
	UserAgents *blocklist `json:"user_agents,omitempty"`
	Referers   *blocklist `json:"referers,omitempty"`

	networks *address.Networks
}

// A blocklist is compared with the value of a header.
type blocklist struct {
	// Whole are values in lower case, each with true.
	Whole    map[string]bool `json:"whole"`
	Patterns []pattern       `json:"patterns"`
}

// A pattern is a regular expression.
type pattern struct {
	Pattern  string `json:"pattern"`
	Caseless bool   `json:"caseless,omitempty"`
}

// texts are the entries of a list of values.
type texts struct {
	text string
	blocklist
}

func (t texts) String() string { return t.text }

func (t texts) policy() *blocklist {
	if t.text == "" {
		return nil
	}
	return &t.blocklist
}

// Each request is compared with all expressions.
const (
	maxTexts    = 10000
	maxPatterns = 100
	maxLength   = 1024
)

func parseTexts(text string) (texts, error) {
	list := texts{text, blocklist{Whole: map[string]bool{}, Patterns: []pattern{}}}
	if text == "" {
		return list, nil
	}
	invalid := fmt.Errorf("must be values or regular expressions of 1 to %d bytes, separated by commas", maxLength)
	for entry := range strings.SplitSeq(text, ",") {
		// As in ingress-nginx, a comma too many does no harm.
		if entry == "" {
			continue
		}
		entry = strings.TrimSpace(entry)
		if entry == "" || entry == "~" || entry == "~*" || len(entry) > maxLength {
			return texts{}, invalid
		}
		expression, is := strings.CutPrefix(entry, "~")
		if !is {
			list.Whole[nginxsyntax.LowerASCII(entry)] = true
			continue
		}
		p := pattern{Pattern: expression}
		p.Pattern, p.Caseless = strings.CutPrefix(expression, "*")
		if _, err := pcre.Compile(p.Pattern, pcre.Options{Caseless: p.Caseless}); err != nil {
			return texts{}, fmt.Errorf("%.60q: %w", expression, err)
		}
		list.Patterns = append(list.Patterns, p)
	}
	if len(list.Whole)+len(list.Patterns) == 0 {
		return texts{}, invalid
	}
	if len(list.Whole) > maxTexts || len(list.Patterns) > maxPatterns {
		return texts{}, fmt.Errorf("must be at most %d values and %d regular expressions", maxTexts, maxPatterns)
	}
	return list, nil
}
