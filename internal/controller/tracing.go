package controller

import "github.com/headgate/headgate/internal/model"

// configureTracing says how spans are exported from now on.
func (c *Controller) configureTracing(t model.Tracing) {
	if c.settings.Tracing != nil {
		c.settings.Tracing.Configure(t)
	}
}
