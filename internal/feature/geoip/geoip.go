// Package geoip has NGINX look up where the addresses of clients are. What it finds is in variables for the access
// log and for headers.
package geoip

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/geo"
)

// maxMinutes is a day: databases change less often.
const maxMinutes = 24 * 60

var (
	use = feature.Setting[bool]{
		Key: "use-geoip2", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Looks up where the addresses of clients are, in the databases of --maxmind-edition-ids. See [geoip.md](geoip.md).",
	}
	rereads = feature.Setting[int]{
		Key: "geoip2-autoreload-in-minutes", Parse: feature.Int(0, maxMinutes), Scope: feature.ScopeProcess,
		Doc: "With a number of minutes, NGINX looks this often for new databases, and takes them without a reload. 0 has them taken at once, by a reload.",
	}
)

// Feature is the variables of GeoIP2.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "client_location",
		Doc:      "Looks up where the addresses of clients are, in GeoIP2 databases.",
		Settings: []feature.AnySetting{use, rereads},
		Process:  process,
	}
}

func process(v feature.Values, out *feature.ProcessOut) {
	if !use.Get(v) {
		return
	}
	g := &out.Process.Geo
	g.On = true
	if !v.Has(feature.GeoIP2) {
		out.Warn(use, finding.MissingCapability, "this NGINX does not have the module for GeoIP2 (on Debian and Ubuntu the package libnginx-mod-http-geoip2)", "all its variables are empty")
		return
	}
	g.Rereads = time.Duration(rereads.Get(v)) * time.Minute
	known := v.GeoDatabases()
	for _, edition := range geo.Editions() {
		at := slices.IndexFunc(known, func(d feature.GeoDatabase) bool { return d.Edition == edition.String() })
		if at < 0 {
			continue
		}
		d := known[at]
		if d.Problem != "" {
			effect := "the last good database is used"
			if d.Digest == "" {
				effect = "its variables are empty"
			}
			out.Warn(use, finding.MissingObject, fmt.Sprintf("%s: %s", edition, d.Problem), effect)
		}
		if d.Digest != "" {
			g.Databases = append(g.Databases, geo.Database{Edition: edition, Digest: d.Digest})
		}
	}
}
