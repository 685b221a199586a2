package nginxconf

import (
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// ZonesOf are the zones that nginx.conf defines.
func ZonesOf(g model.Globals) directive.Zones {
	names := nginxsyntax.Defined(g.Process.Snippets.HTTP.String())
	return directive.Zones{Requests: names.RequestZones, Connections: names.ConnectionZones}
}

// givenBy is what the administrator's text for locations has in each of them.
func givenBy(g model.Globals) directive.Given {
	lines, err := nginxsyntax.Parse(g.Process.Snippets.Location.String())
	if err != nil {
		// NGINX does not get such a text.
		return directive.Given{}
	}
	var given directive.Given
	for _, line := range lines {
		given.Names = append(given.Names, line.Name)
		for _, argument := range line.Args {
			zone, is := strings.CutPrefix(argument, "zone=")
			switch {
			case line.Name == "limit_req" && is:
				given.Zones.Requests = append(given.Zones.Requests, zone)
			case line.Name == "limit_conn":
				given.Zones.Connections = append(given.Zones.Connections, argument)
			}
		}
	}
	return given
}
