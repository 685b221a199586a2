package feature

import (
	"context"
	"errors"

	"github.com/headgate/headgate/internal/model"
)

// A Trial is directives as they would be in an nginx.conf in a folder, in the http block and
// in one location, with the files that they name.
type Trial struct {
	// Namespace is that of the Ingress whose directives they are.
	Namespace string
	Lines     func(folder string) (http, location []string)
	Files     []model.Content
}

// Try tests a Trial by itself. The error says why NGINX rejects it, or is an *UntestedError.
// Otherwise the result depends on the Trial alone.
type Try func(Trial) error

// An UntestedError is why a Trial could not be tested now. It will be tested again.
type UntestedError struct {
	Err error
}

func (e *UntestedError) Error() string { return "not tested: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *UntestedError) Unwrap() error { return e.Err }

// IsUntested reports whether a Trial could not be tested: the error says nothing about it.
func IsUntested(err error) bool {
	untested := (*UntestedError)(nil)
	return errors.As(err, &untested)
}

// A Tester has NGINX test directives.
type Tester interface {
	// Tried is the result of an earlier Try, if there was one.
	Tried(t Trial) (result error, known bool)
	// Try tests directives, if that can be done now.
	Try(ctx context.Context, t Trial) error
}

// Try has NGINX test directives whose text a tenant or the administrator wrote: NGINX rejects
// its whole configuration for one mistake. Where there is no NGINX, as for lint, all pass.
func (v Values) Try(t Trial) error {
	if v.config.schema.Try == nil {
		return nil
	}
	t.Namespace = v.origin.Namespace
	return v.config.schema.Try(t)
}
