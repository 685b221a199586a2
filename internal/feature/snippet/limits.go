package snippet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/syntax/snippet"
)

// maxBurst bounds a burst. NGINX counts in thousandths.
const maxBurst = 1_000_000

// followRequestLimit has NGINX limit requests by a zone of the administrator's. What is not
// followed denies: it may keep off attacks.
func followRequestLimit(f *follower, s snippet.Setting) {
	var zone string
	burst, delay := 0, 0
	noDelay := false
	for _, argument := range s.Arguments {
		name, value, _ := strings.Cut(argument, "=")
		n, err := strconv.Atoi(value)
		switch {
		case name == "zone":
			zone = value
		case argument == "nodelay":
			noDelay = true
		case name == "burst" && err == nil && n >= 0 && n <= maxBurst:
			burst = n
		case name == "delay" && err == nil && n >= 0 && n <= maxBurst:
			delay = n
		default:
			f.deny(s, fmt.Sprintf("invalid parameter %q", finding.Shorten(argument)))
			return
		}
	}
	if noDelay {
		delay = burst
	}
	if i := f.seen[s.Name]; f.hasZone(s, zone, feature.Defined(f.values).RequestZones, "limit_req_zone") && f.isWithin(s, i) {
		f.set(requestLimits[i-1].LimitsRequests(directive.Zone(zone), burst, delay))
	}
}

func followConnectionLimit(f *follower, s snippet.Setting) {
	most, err := strconv.Atoi(s.Arguments[1])
	if err != nil || most < 1 || most > 65535 {
		f.deny(s, "the number must be from 1 to 65535")
		return
	}
	zone := s.Arguments[0]
	if i := f.seen[s.Name]; f.hasZone(s, zone, feature.Defined(f.values).ConnectionZones, "limit_conn_zone") && f.isWithin(s, i) {
		f.set(connectionLimit[i-1].LimitsConnections(directive.Zone(zone), most))
	}
}

// hasZone denies unless the administrator defines a zone.
func (f *follower) hasZone(s snippet.Setting, zone string, zones []string, directive string) bool {
	if limit := s.Name + " " + zone; f.limits[limit] {
		f.deny(s, fmt.Sprintf("the zone %q is limited by twice", finding.Shorten(zone)))
		return false
	} else if slices.Contains(zones, zone) {
		f.limits[limit] = true
		return true
	}
	f.deny(s, fmt.Sprintf("the administrator's http-snippet has no %s with the name %q; use limit-rps or limit-connections", directive, finding.Shorten(zone)))
	return false
}

// isWithin denies if there are too many.
func (f *follower) isWithin(s snippet.Setting, i int) bool {
	if i > maxLimits {
		f.deny(s, fmt.Sprintf("at most %d are supported", maxLimits))
	}
	return i <= maxLimits
}
