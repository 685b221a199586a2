package accesslog

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// One mistake in what these values become, and NGINX rejects its whole configuration. So it
// tests each of them alone first.

// unknown is what NGINX says of a variable that it does not have.
var unknown = regexp.MustCompile(`unknown "([a-z0-9_]+)" variable$`)

// formatFor is the format, or the default one where NGINX does not take it.
func formatFor(v feature.Values, out *feature.ProcessOut, escape model.LogEscape) model.LogFormat {
	wanted := format.Get(v)
	if wanted == format.Default {
		return model.LogFormat{}
	}
	var lines []string
	for _, name := range model.LogVariables() {
		lines = append(lines, fmt.Sprintf(`map "" $%s { default ""; }`, name))
	}
	lines = append(lines, fmt.Sprintf("log_format tried escape=%s %s;", escape, wanted.Directive(nil)))
	err := v.Try(feature.Trial{Lines: func(string) (http, location []string) { return lines, nil }})
	if err == nil {
		return wanted
	}
	message := "invalid value: " + err.Error()
	if found := unknown.FindStringSubmatch(err.Error()); found != nil {
		message = fmt.Sprintf("invalid value: NGINX does not have the variable $%s", found[1])
	}
	reject(out, format, err, message)
	return model.LogFormat{}
}

// targetFor is the target of a setting, standard output if NGINX does not take it.
func targetFor(v feature.Values, out *feature.ProcessOut, setting feature.Setting[model.LogTarget]) model.LogTarget {
	target := setting.Get(v)
	if target.String() == "" {
		return model.LogTarget{}
	}
	if err := try(v, target, model.LogOptions{}); err != nil {
		reject(out, setting, err, fmt.Sprintf("invalid value %q: %s", target, err))
		return model.LogTarget{}
	}
	return target
}

// optionsFor is how NGINX writes to a target. What it does not take is left out.
func optionsFor(v feature.Values, out *feature.ProcessOut, target model.LogTarget) model.LogOptions {
	options := params.Get(v)
	if options == (model.LogOptions{}) {
		return options
	}
	if err := try(v, target, options); err != nil {
		reject(out, params, err, fmt.Sprintf("invalid value %q: %s", options, err))
		return model.LogOptions{}
	}
	return options
}

func try(v feature.Values, target model.LogTarget, options model.LogOptions) error {
	line := fmt.Sprintf("access_log %s combined %s;", cmp.Or(target.String(), "/dev/null"), options)
	return v.Try(feature.Trial{Lines: func(string) (http, location []string) { return nil, []string{line} }})
}

// reject reports a value that is not used.
func reject(out *feature.ProcessOut, setting feature.AnySetting, err error, message string) {
	if feature.IsUntested(err) {
		out.Reject(setting, finding.Waits, "NGINX could not test the value yet, and will do so again: "+err.Error())
		return
	}
	out.Reject(setting, finding.InvalidValue, message)
}
