package controller

import (
	"time"

	"github.com/headgate/headgate/internal/unit"
)

// tryAgain has the units built again whose trials could not be made.
func (c *Controller) tryAgain() {
	var keys []unit.Key
	for key, namespace := range c.trials.Untried() {
		if key.Kind != unit.Host {
			keys = append(keys, key)
			continue
		}
		c.backlog.Add(key.Name, namespace, time.Now())
	}
	c.build(keys)
}
