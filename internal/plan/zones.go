package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// Snippets of tenants may name zones of the administrator's text for the http block. Which text of its key
// nginx.conf gets is decided later, by NGINX's test. Where it lacks a zone, routes that name it are
// denied. Units of hosts that the data plane still has may name it nevertheless: see directive.List.Having.

// zonesOf are the zones that nginx.conf defines.
func zonesOf(g model.Globals) directive.Zones {
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

// setZones sets the zones that profiles may name.
func (p *profileBound) setZones(zones directive.Zones) {
	p.changed = p.changed || !slices.Equal(zones.Requests, p.zones.Requests) || !slices.Equal(zones.Connections, p.zones.Connections)
	p.zones = zones
}

// lackZones are the profiles that name a zone which nginx.conf lacks, with what is wrong.
func (p *profileBound) lackZones() map[model.Profile]string {
	var closed map[model.Profile]string
	for profile := range p.asked {
		limit, zone := p.directives.Lacking(profile, p.zones)
		if limit == "" {
			continue
		}
		if closed == nil {
			closed = map[model.Profile]string{}
		}
		closed[profile] = fmt.Sprintf("a snippet has %s with the zone %q, and NGINX does not have the text of %s that defines it: a finding of the ConfigMap says why", limit, zone, model.InHTTP)
	}
	return closed
}

func lacksZone(r model.Route, message string) finding.Finding {
	return finding.Finding{
		Object: "ingress/" + r.Origin.Namespace + "/" + r.Origin.Ingress, Field: "metadata.annotations", Code: finding.Waits,
		Message: message, Effect: "until it does, the paths answer 503", Denies: true,
	}
}
