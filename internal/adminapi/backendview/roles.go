package backendview

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/unit"
)

// Roles are what hosts use backends for, by the backends' keys.
type Roles map[string]*role

type role struct {
	// routed is set if a route has it as its own backend.
	routed bool
	// canaryOf are the backends of the routes whose requests it gets some of, and shape says
	// which: that of the first such route.
	canaryOf []string
	shape    TrafficShaping
	// canaries are the names of its canaries, in the order of their precedence.
	canaries []string
}

func (r Roles) of(key string) *role {
	if r[key] == nil {
		r[key] = &role{}
	}
	return r[key]
}

// canary is what the policy of canaries has of one.
type canary struct {
	Backend string `json:"backend"`
	When    struct {
		Header  string  `json:"header"`
		Value   string  `json:"value"`
		Pattern string  `json:"pattern"`
		Cookie  string  `json:"cookie"`
		Share   float64 `json:"share"`
	} `json:"when"`
}

// Add notes what a host uses backends for.
func (r Roles) Add(host json.RawMessage) error {
	var h unit.PackedHost
	if err := json.Unmarshal(host, &h); err != nil {
		return fmt.Errorf("decode a host: %w", err)
	}
	canaries := make([][]canary, len(h.Policies))
	for i, policy := range h.Policies {
		var parts []json.RawMessage
		if err := json.Unmarshal(policy, &parts); err != nil || len(parts) < 2 {
			return fmt.Errorf("decode policy %d of a host: %w", i+1, err)
		}
		if string(parts[0]) != `"canary"` {
			continue
		}
		if err := json.Unmarshal(parts[1], &canaries[i]); err != nil {
			return fmt.Errorf("decode the canaries of a host: %w", err)
		}
	}
	for _, route := range h.Routes {
		if route.Backend < 1 || route.Backend > len(h.Backends) {
			continue
		}
		own := h.Backends[route.Backend-1]
		r.of(own).routed = true
		for _, n := range route.Policies {
			if n >= 1 && n <= len(canaries) {
				r.shape(own, canaries[n-1])
			}
		}
	}
	return nil
}

// shape notes the canaries of a route.
func (r Roles) shape(own string, canaries []canary) {
	for _, c := range canaries {
		of := r.of(c.Backend)
		if len(of.canaryOf) == 0 {
			of.shape = shaping(c)
		}
		if !slices.Contains(of.canaryOf, own) {
			of.canaryOf = append(of.canaryOf, own)
			r.of(own).canaries = append(r.of(own).canaries, Name(c.Backend))
		}
	}
}

func shaping(c canary) TrafficShaping {
	s := TrafficShaping{
		Header:      strings.ReplaceAll(c.When.Header, "_", "-"),
		HeaderValue: c.When.Value, HeaderPattern: c.When.Pattern, Cookie: c.When.Cookie, WeightTotal: 100,
	}
	// The unit has a share from 0 to 1.
	for s.WeightTotal < 1e6 && !isWhole(c.When.Share*float64(s.WeightTotal)) {
		s.WeightTotal *= 10
	}
	s.Weight = int(math.Round(c.When.Share * float64(s.WeightTotal)))
	return s
}

func isWhole(f float64) bool { return math.Abs(f-math.Round(f)) < 1e-6 }

// describe fills in the roles of a backend.
func (r Roles) describe(key string, b *Backend) {
	if of := r[key]; of != nil {
		b.NoServer = len(of.canaryOf) > 0 && !of.routed
		b.TrafficShapingPolicy = of.shape
		b.AlternativeBackends = of.canaries
	}
}
