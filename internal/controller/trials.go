package controller

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/plan"
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

// testAgain has NGINX test again what depends on more than its configuration, where it rejects that because of a file
// or a name: what is of no use now is left out, so that other changes go live.
func (c *Controller) testAgain(ctx context.Context, err error) {
	var rejected *nginx.ConfError
	if !errors.As(err, &rejected) || !rejected.Outside() {
		return
	}
	c.settings.Process.ForgetOutside()
	c.buildAll([]unit.Key{unit.GlobalsKey})
	c.apply(ctx)
}

// blameTexts has texts refused that NGINX passed, but could not be reloaded with: a process may have
// taken a port meanwhile. Without them other changes go live.
func (c *Controller) blameTexts(ctx context.Context, next, current plan.Static, err error) {
	texts := next.Globals().Process.Snippets
	if texts == current.Globals().Process.Snippets || texts.IsZero() {
		return
	}
	c.whole.Fail(texts, err)
	c.whole.Accept(current.Globals())
	c.buildAll([]unit.Key{unit.GlobalsKey})
	c.apply(ctx)
}
