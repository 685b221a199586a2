package feature

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A Trial is directives as they would be in an nginx.conf in a folder, in the http block and
// in one location, with the files that they name.
type Trial struct {
	// Namespace is that of the Ingress whose directives they are.
	Namespace string
	Lines     func(folder string) (http, location []string)
	Files     []model.Content
	// Outside is set where the result depends on more than the Trial: on files or names that may come and go. When
	// NGINX has rejected a configuration because of one, it is tested again.
	Outside bool
}

// Try tests a Trial by itself. The error says why NGINX rejects it, or is an *UntestedError.
// Otherwise the result depends on the Trial alone, unless that says otherwise.
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

// HTTPTrial is a Trial of lines of the http block.
func HTTPTrial(lines ...string) Trial {
	return Trial{Lines: func(string) (http, location []string) { return lines, nil }}
}

// RejectTried reports a value that is not used, by the error of a Try.
func (r *Report) RejectTried(s AnySetting, value string, err error) {
	value = finding.Shorten(value)
	if IsUntested(err) {
		r.Reject(s, finding.Waits, fmt.Sprintf("%q could not be tested yet, and will be again: %s", value, err))
		return
	}
	r.Reject(s, finding.InvalidValue, fmt.Sprintf("invalid value %q: %s", value, err))
}

// TryLog reports whether NGINX takes the words of a directive with the target of a log. If it does not, which it
// says of its whole configuration, the value of the setting is reported.
func (r *Report) TryLog(s AnySetting, value string, words ...string) bool {
	trial := HTTPTrial(strings.Join(words, " ") + ";")
	trial.Outside = true
	err := r.values.Try(trial)
	if err != nil {
		r.RejectTried(s, value, err)
	}
	return err == nil
}

// LogTarget is the target of a log that a setting names, the usual one if NGINX can't write there. In the
// directive, words are behind the target.
func (r *Report) LogTarget(s Setting[logging.Target], directive string, words ...string) logging.Target {
	target := s.Get(r.values)
	if text := target.String(); text != "" && !r.TryLog(s, text, append([]string{directive, text}, words...)...) {
		return logging.Target{}
	}
	return target
}
