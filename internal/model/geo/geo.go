// Package geo has what is looked up of clients' addresses: editions of databases, and the variables
// that they give.
//
// It must not know where databases come from.
package geo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settings have NGINX look up the addresses of clients in databases.
type Settings struct {
	On bool
	// Databases are those that are there. A variable of several is of the first.
	Databases []Database
	// Rereads is how often NGINX looks whether a database is a new one. If it is 0, a new one takes a reload.
	Rereads time.Duration
}

// A Database is a database of an edition.
type Database struct {
	Edition Edition
	// Digest is that of its content.
	Digest string
}

// A Edition is a kind of database of MaxMind's.
type Edition struct{ name string }

func (e Edition) String() string { return e.name }

// A Variable is a variable of NGINX.
type Variable struct {
	Name string
	// Field is where the value is in a record, and Default what it is if there is none.
	Field, Default string
}

// kinds are the variables of each kind of database: those of ingress-nginx.
var kinds = map[string][]Variable{
	"Country": {
		{"geoip2_country_code", "country iso_code", ""}, {"geoip2_country_name", "country names en", ""}, {"geoip2_country_geoname_id", "country geoname_id", ""},
		{"geoip2_continent_code", "continent code", ""}, {"geoip2_continent_name", "continent names en", ""}, {"geoip2_continent_geoname_id", "continent geoname_id", ""},
	},
	"City": {
		{"geoip2_city_country_code", "country iso_code", ""}, {"geoip2_city_country_name", "country names en", ""}, {"geoip2_city_country_geoname_id", "country geoname_id", ""},
		{"geoip2_city_continent_code", "continent code", ""}, {"geoip2_city_continent_name", "continent names en", ""},
		{"geoip2_city", "city names en", ""}, {"geoip2_city_geoname_id", "city geoname_id", ""},
		{"geoip2_postal_code", "postal code", ""}, {"geoip2_dma_code", "location metro_code", ""},
		{"geoip2_latitude", "location latitude", ""}, {"geoip2_longitude", "location longitude", ""}, {"geoip2_time_zone", "location time_zone", ""},
		{"geoip2_region_code", "subdivisions 0 iso_code", ""}, {"geoip2_region_name", "subdivisions 0 names en", ""}, {"geoip2_region_geoname_id", "subdivisions 0 geoname_id", ""},
		{"geoip2_subregion_code", "subdivisions 1 iso_code", ""}, {"geoip2_subregion_name", "subdivisions 1 names en", ""}, {"geoip2_subregion_geoname_id", "subdivisions 1 geoname_id", ""},
	},
	"ASN": {{"geoip2_asn", "autonomous_system_number", ""}, {"geoip2_org", "autonomous_system_organization", ""}},
	"ISP": {{"geoip2_isp", "isp", ""}, {"geoip2_isp_org", "organization", ""}, {"geoip2_asn", "autonomous_system_number", ""}},
	"Anonymous-IP": {
		{"geoip2_is_anon", "is_anonymous", ""}, {"geoip2_is_anonymous", "is_anonymous", "0"}, {"geoip2_is_anonymous_vpn", "is_anonymous_vpn", "0"},
		{"geoip2_is_hosting_provider", "is_hosting_provider", "0"}, {"geoip2_is_public_proxy", "is_public_proxy", "0"}, {"geoip2_is_tor_exit_node", "is_tor_exit_node", "0"},
	},
	"Connection-Type": {{"geoip2_connection_type", "connection_type", ""}},
}

// Editions are all editions. A variable of several databases is of the first one here.
func Editions() []Edition {
	return []Edition{
		{"GeoIP2-Country"}, {"GeoLite2-Country"}, {"GeoIP2-City"}, {"GeoLite2-City"}, {"GeoIP2-ASN"}, {"GeoLite2-ASN"}, {"GeoIP2-ISP"},
		{"GeoIP2-Anonymous-IP"}, {"GeoIP2-Connection-Type"},
	}
}

// Variables are those of the edition.
func (e Edition) Variables() []Variable {
	_, kind, _ := strings.Cut(e.name, "-")
	return kinds[kind]
}

// Variables are the names of all variables, sorted.
func Variables() []string {
	var names []string
	for _, variables := range kinds {
		for _, v := range variables {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Of are the variables whose values are from a database.
func (g Settings) Of(database Database) []Variable {
	var own []Variable
	for _, v := range database.Edition.Variables() {
		if g.first(v.Name) == database.Edition {
			own = append(own, v)
		}
	}
	return own
}

// first is the edition that a variable is of, empty if no database has it.
func (g Settings) first(variable string) Edition {
	for _, d := range g.Databases {
		if slices.ContainsFunc(d.Edition.Variables(), func(v Variable) bool { return v.Name == variable }) {
			return d.Edition
		}
	}
	return Edition{}
}

// Empty are the variables that no database has.
func (g Settings) Empty() []string {
	if !g.On {
		return nil
	}
	return slices.DeleteFunc(Variables(), func(name string) bool { return g.first(name) != Edition{} })
}

// MarshalText is the name.
func (e Edition) MarshalText() ([]byte, error) { return []byte(e.name), nil }

// UnmarshalText reads what MarshalText made.
func (e *Edition) UnmarshalText(text []byte) error {
	for _, known := range Editions() {
		if known.name == string(text) {
			*e = known
			return nil
		}
	}
	return fmt.Errorf("%.60q: must be one of the editions %v", text, Editions())
}
