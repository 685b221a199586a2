package directive

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// A Zone is the name of shared memory that the administrator's text defines: letters, digits
// and underscores.
type Zone string

// Zones are the names that nginx.conf defines: for limits of requests, and for limits of connections.
type Zones struct{ Requests, Connections []string }

// Having is the list for an nginx.conf with these zones alone. NGINX does not start with a limit whose zone
// it does not have: instead of the limit, the location refuses all requests.
func (l List) Having(zones Zones) List {
	list := slices.Clone(l)
	for i := range list {
		list[i].zones = &zones
	}
	return list
}

// Given is what lines of the administrator's in each location have: directives by their names, and the zones
// of their limits.
type Given struct {
	Names []string
	Zones Zones
}

// Beside is the list for locations with these lines. A setting of a tenant that yields is left out, and so is
// a limit by the same zone: that of the administrator applies.
func (l List) Beside(given Given) List {
	list := slices.Clone(l)
	for i := range list {
		list[i].given = given
	}
	return list
}

// closed is what a location has instead of a limit without its zone.
const closed = "return 503;"

// Lacking is the first limit of a profile whose zone is not among those, with the name of the zone. Both are empty
// if there is none.
func (l List) Lacking(p model.Profile, zones Zones) (limit, zone string) {
	for _, d := range l {
		if d.Kind != RequestLimit && d.Kind != ConnectionLimit {
			continue
		}
		if v := p.Get(d.Name); v.Text != "" && !d.isIn(zones, v.Text) {
			return cmp.Or(d.As, d.Name), zoneOf(d.Name, v.Text)
		}
	}
	return "", ""
}

// isIn reports whether the zone of a value is among those.
func (d Directive) isIn(zones Zones, text string) bool {
	of := zones.Requests
	if d.Kind == ConnectionLimit {
		of = zones.Connections
	}
	return slices.Contains(of, zoneOf(d.Name, text))
}

// LimitsRequests is the value of a directive of the kind RequestLimit: how many requests beyond
// the rate may come at once, and how many of these don't wait.
func (d Directive) LimitsRequests(zone Zone, burst, delay int) model.ProfileValue {
	return model.ProfileValue{Name: d.Name, Text: fmt.Sprintf("%s,%d,%d", encodeZone(zone), burst, min(burst, delay))}
}

// LimitsConnections is the value of a directive of the kind ConnectionLimit.
func (d Directive) LimitsConnections(zone Zone, most int) model.ProfileValue {
	return model.ProfileValue{Name: d.Name, Text: fmt.Sprintf("%s,%d", encodeZone(zone), most)}
}

var zoneForm = regexp.MustCompile(`^[A-Za-z0-9_]{1,100}$`)

// encodeZone writes a name in the few characters that a profile may have.
func encodeZone(zone Zone) string {
	if !zoneForm.MatchString(string(zone)) {
		panic(fmt.Sprintf("directive: a zone of the name %q", zone))
	}
	return hex.EncodeToString([]byte(zone))
}

// limitText is the parameters of a limit, empty if there is none.
func (d Directive) limitText(text string) string {
	if text == "" {
		return ""
	}
	fields := strings.Split(text, ",")
	zone := zoneOf(d.Name, text)
	if d.Kind == ConnectionLimit {
		return zone + " " + fields[1]
	}
	parameters := "zone=" + zone
	if fields[1] != "0" {
		parameters += " burst=" + fields[1]
	}
	switch fields[2] {
	case "0":
	case fields[1]:
		parameters += " nodelay"
	default:
		parameters += " delay=" + fields[2]
	}
	return parameters
}

// zoneOf is the zone in the value of a limit.
func zoneOf(name, text string) string {
	encoded, _, _ := strings.Cut(text, ",")
	zone, err := hex.DecodeString(encoded)
	if err != nil || !zoneForm.Match(zone) {
		panic("directive: " + name + " with the value " + text)
	}
	return string(zone)
}
