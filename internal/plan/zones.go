package plan

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// Snippets of tenants may name zones of the administrator's text for the http block. Which text of its key
// nginx.conf gets is decided later, by NGINX's test. Where it lacks a zone, routes that name it are
// denied. Units of hosts that the data plane still has may name it nevertheless: see directive.List.Having.

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
