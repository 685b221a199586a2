package accesslog

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/headgate/headgate/internal/model/geo"
	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model/directive"
)

// One mistake in what these values become, and NGINX rejects its whole configuration. So it
// tests each of them alone first.

// unknown is what NGINX says of a variable that it does not have.
var unknown = regexp.MustCompile(`unknown "([a-z0-9_]+)" variable$`)

// formatFor is the format, or the default one where NGINX does not take it.
func formatFor(v feature.Values, out *feature.ProcessOut, escape logging.Escape) logging.Format {
	wanted := format.Get(v)
	if wanted == format.Default {
		return logging.Format{}
	}
	var lines []string
	for _, name := range append(logging.Variables(), geoVariables(out.Process.Geo)...) {
		lines = append(lines, directive.Declaration(name, ""))
	}
	lines = append(lines, fmt.Sprintf("log_format tried escape=%s %s;", escape, wanted.Directive(nil)))
	err := v.Try(feature.HTTPTrial(lines...))
	if err == nil {
		return wanted
	}
	if found := unknown.FindStringSubmatch(err.Error()); found != nil {
		err = fmt.Errorf("NGINX does not have the variable $%s", found[1])
	}
	out.RejectTried(format, wanted.String(), err)
	return logging.Format{}
}

// geoVariables are those that nginx.conf has.
func geoVariables(g geo.Settings) []string {
	if !g.On {
		return nil
	}
	return geo.Variables()
}

// optionsFor is how NGINX writes to a target. What it does not take is left out.
func optionsFor(v feature.Values, out *feature.ProcessOut, target logging.Target) logging.Options {
	options := params.Get(v)
	if options != (logging.Options{}) && !out.TryLog(params, options.String(), "access_log", cmp.Or(target.String(), "/dev/null"), "combined", options.String()) {
		return logging.Options{}
	}
	return options
}
