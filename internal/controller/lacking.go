package controller

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/nginx"
)

// lacking lists the capabilities of features that this NGINX lacks.
func lacking(c nginx.Capabilities) []feature.Capability {
	var list []feature.Capability
	if c.OldTLS {
		list = append(list, feature.HybridGroups)
	}
	return list
}
