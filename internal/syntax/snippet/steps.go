package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

func (p *parser) checkPattern(text string, caseless bool) error {
	_, err := pcre.Compile(text, pcre.Options{Caseless: caseless})
	if wrong := (*pcre.PatternError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("invalid expression %q: %w", text, wrong)
	}
	return err
}

// settable are the variables of NGINX and of ingress-nginx's locations that set may change.
var settable = []string{
	"args", "limit_rate", "best_http_host", "ingress_name", "location_path", "namespace", "pass_access_scheme", "pass_port",
	"pass_server_port", "service_name", "service_port",
}

func (p *parser) set(s *scope, d *directive) error {
	name, err := p.variableToSet(d.Args[0])
	if err != nil {
		return err
	}
	to, err := p.template(d.Args[1])
	if err != nil {
		return err
	}
	*s.steps = append(*s.steps, program.Step{Set: name, To: to})
	return nil
}

// variableToSet reads the name of a variable that gets a value.
func (p *parser) variableToSet(text string) (string, error) {
	name, ok := strings.CutPrefix(strings.ToLower(text), "$")
	switch {
	case !ok || !isName(name):
		return "", fmt.Errorf("invalid variable name %q", text)
	case name == "proxy_upstream_name":
		return "", errors.New("requests go to the backend that the Ingress names; canary annotations choose among several")
	case strings.HasPrefix(name, "hg_"):
		return "", fmt.Errorf("invalid variable name %q: names that begin with hg_ are Headgate's", text)
	case slices.Contains(builtIn, name) && !slices.Contains(settable, name), slices.Contains(p.options.Administrator, name):
		return "", fmt.Errorf("the variable $%s can't be set", name)
	}
	return name, nil
}

// isURL reports whether NGINX takes a text as a redirect to another place.
func isURL(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "$scheme")
}

func (p *parser) returns(s *scope, d *directive) error {
	code, text, has := d.Args[0], "", len(d.Args) == 2
	if has {
		text = d.Args[1]
	} else if isURL(code) {
		code, text, has = "302", code, true
	}
	status, err := strconv.Atoi(code)
	if err != nil || status < 200 || status > 999 {
		return fmt.Errorf("invalid status %q: must be from 200 to 999", code)
	}
	to, err := p.template(text)
	if err != nil {
		return err
	}
	*s.steps = append(*s.steps, program.Step{Return: status, HasTo: has, To: to})
	return nil
}

func (p *parser) rewrite(s *scope, d *directive) error {
	step := program.Step{Rewrite: d.Args[0]}
	if err := p.checkPattern(step.Rewrite, false); err != nil {
		return err
	}
	if isURL(d.Args[1]) {
		step.Flag = "redirect"
	}
	if len(d.Args) == 3 {
		switch flag := d.Args[2]; flag {
		case "last", "break":
			step.Flag = or(step.Flag, flag)
		case "redirect", "permanent":
			step.Flag = flag
		default:
			return fmt.Errorf("invalid flag %q: must be one of last, break, redirect and permanent", flag)
		}
	}
	text, ok := strings.CutSuffix(d.Args[1], "?")
	if step.NoArguments = ok; text == "" && !ok {
		return errors.New("the replacement is empty")
	}
	var err error
	if step.To, err = p.template(text); err != nil {
		return err
	}
	*s.steps = append(*s.steps, step)
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (p *parser) breaks(s *scope, _ *directive) error {
	*s.steps = append(*s.steps, program.Step{Break: true})
	return nil
}
