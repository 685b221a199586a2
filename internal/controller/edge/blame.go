package edge

import (
	"context"
	"errors"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/plan"
)

// testAgain has NGINX test again what depends on more than its configuration, where it rejects that because of a file
// or a name: what is of no use now is left out, so that other changes go live.
func (e *Edge) testAgain(ctx context.Context, err error) {
	var rejected *nginx.ConfError
	if !errors.As(err, &rejected) || !rejected.Outside() {
		return
	}
	e.settings.Process.ForgetOutside()
	e.builder.Reconsider()
	e.Apply(ctx)
}

// blameTexts has texts refused that NGINX passed, but could not be reloaded with: a process may have
// taken a port meanwhile. Without them other changes go live.
func (e *Edge) blameTexts(ctx context.Context, next, current plan.Static, err error) {
	texts := next.Globals().Process.Snippets
	if texts == current.Globals().Process.Snippets || texts.IsZero() {
		return
	}
	e.builder.Refuse(texts, err, current.Globals())
	e.Apply(ctx)
}
