package controller

import (
	"slices"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/nginx"
)

// lacking lists the capabilities of features that this NGINX lacks.
func lacking(c nginx.Capabilities) []feature.Capability {
	return slices.DeleteFunc(feature.Capabilities(), func(f feature.Capability) bool { return slices.Contains(c.Has, string(f)) })
}
