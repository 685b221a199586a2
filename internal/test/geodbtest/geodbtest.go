// Package geodbtest makes databases of where addresses are, for tests.
package geodbtest

import (
	"bytes"
	"net"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// City is a database of cities, in which 127.0.0.0/8 is a city of that name in New Zealand, with two regions, and
// 2001:db8::/32 is in Norway.
func City(t testing.TB, name string) []byte {
	t.Helper()
	text := func(text string) mmdbtype.Map { return mmdbtype.Map{"en": mmdbtype.String(text)} }
	return database(t, "GeoLite2-City", map[string]mmdbtype.Map{
		"127.0.0.0/8": {
			"city":         mmdbtype.Map{"names": text(name), "geoname_id": mmdbtype.Uint32(7)},
			"country":      mmdbtype.Map{"iso_code": mmdbtype.String("NZ"), "names": text("New Zealand"), "geoname_id": mmdbtype.Uint32(8)},
			"continent":    mmdbtype.Map{"code": mmdbtype.String("OC"), "names": text("Oceania")},
			"location":     mmdbtype.Map{"latitude": mmdbtype.Float64(-41.5), "longitude": mmdbtype.Float64(174.25), "time_zone": mmdbtype.String("Pacific/Auckland"), "metro_code": mmdbtype.Uint16(9)},
			"postal":       mmdbtype.Map{"code": mmdbtype.String("6011")},
			"subdivisions": mmdbtype.Slice{mmdbtype.Map{"iso_code": mmdbtype.String("WGN"), "names": text("Wellington")}, mmdbtype.Map{"iso_code": mmdbtype.String("X"), "names": text("Te Aro")}},
		},
		"2001:db8::/32": {"country": mmdbtype.Map{"iso_code": mmdbtype.String("NO")}},
	})
}

// ASN is a database of networks, in which 127.0.0.0/8 is of an organization.
func ASN(t testing.TB, organization string) []byte {
	t.Helper()
	return database(t, "GeoLite2-ASN", map[string]mmdbtype.Map{
		"127.0.0.0/8": {"autonomous_system_number": mmdbtype.Uint32(64496), "autonomous_system_organization": mmdbtype.String(organization)},
	})
}

// Anonymous is a database of anonymous clients, in which 127.0.0.0/8 is a VPN.
func Anonymous(t testing.TB) []byte {
	t.Helper()
	return database(t, "GeoIP2-Anonymous-IP", map[string]mmdbtype.Map{
		"127.0.0.0/8": {"is_anonymous": mmdbtype.Bool(true), "is_anonymous_vpn": mmdbtype.Bool(true)},
	})
}

func database(t testing.TB, kind string, records map[string]mmdbtype.Map) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType: kind, Description: map[string]string{"en": "for tests"}, IncludeReservedNetworks: true, DisableIPv4Aliasing: true, BuildEpoch: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for network, record := range records {
		_, parsed, err := net.ParseCIDR(network)
		if err == nil {
			err = tree.Insert(parsed, record)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
