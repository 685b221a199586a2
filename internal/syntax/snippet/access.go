package snippet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/syntax/snippet/argument"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

// access reads allow and deny.
func (p *parser) access(s *scope, d *directive) error {
	r := program.Rule{Allow: d.Directive == "allow", Network: d.Args[0]}
	if r.Network != "all" && r.Network != "unix:" {
		network, err := p.network(d, r.Network)
		if err != nil {
			return err
		}
		r.Network = network
	}
	s.effects.Rules = append(s.effects.Rules, r)
	return nil
}

func (p *parser) network(d *directive, text string) (string, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return address.String(), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return "", fmt.Errorf(`invalid address %q: must be an IP address, a network such as 10.0.0.0/8, "all" or "unix:"`, text)
	}
	if network != network.Masked() {
		p.warn(d, "the bits of %s behind the first %d are not looked at", text, network.Bits())
	}
	return network.Masked().String(), nil
}

// methods are those that NGINX knows in limit_except.
func methods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "OPTIONS", "PROPFIND", "PROPPATCH", "LOCK", "UNLOCK", "PATCH"}
}

func (p *parser) limitExcept(s *scope, d *directive) error {
	m := &program.MethodRules{}
	for _, text := range d.Args {
		method := strings.ToUpper(text)
		if !slices.Contains(methods(), method) {
			return fmt.Errorf("invalid method %q: must be one of %s", text, strings.Join(methods(), ", "))
		}
		m.Except = append(m.Except, method)
	}
	inner := &scope{in: inMethods, place: s.place, block: s.block, outer: s, seen: map[string]bool{}}
	p.run(inner, d.Block)
	m.Rules = inner.effects.Rules
	s.effects.Methods = m
	return nil
}

func (p *parser) internal(s *scope, _ *directive) error {
	if s.block.location == nil {
		return errors.New("clients could not reach the paths of the Ingress")
	}
	s.block.location.Internal = true
	return nil
}

func (p *parser) authRequestSet(s *scope, d *directive) error {
	name, err := p.variableToSet(d.Args[0])
	if err != nil {
		return err
	}
	value, err := p.template(d.Args[1])
	if err != nil {
		return err
	}
	s.effects.AuthVariables = append(s.effects.AuthVariables, program.Variable{Name: name, Value: value})
	return nil
}

// errorPage reads error_page: statuses, a status after "=", and a URL, a path or "@name".
func (p *parser) errorPage(s *scope, d *directive) error {
	to := d.Args[len(d.Args)-1]
	statuses := d.Args[:len(d.Args)-1]
	page := program.ErrorPage{}
	explicit := false
	if last := len(statuses) - 1; strings.HasPrefix(statuses[last], "=") {
		explicit, page.Status = true, -1
		if text := statuses[last][1:]; text != "" {
			status, err := strconv.Atoi(text)
			if err != nil || status < 200 || status > 999 {
				return fmt.Errorf("invalid status %q: must be from 200 to 999", text)
			}
			page.Status = status
		}
		statuses = statuses[:last]
	}
	var err error
	if name, ok := strings.CutPrefix(to, "@"); ok {
		page.Name = name
		if strings.Contains(name, "$") {
			err = fmt.Errorf("the name of the location %q has variables", to)
		}
	} else {
		page.To, err = p.template(to)
	}
	if err == nil && len(statuses) == 0 {
		err = errors.New("there is no status")
	}
	if err != nil {
		return err
	}
	return addErrorPage(&s.effects, page, statuses, explicit)
}

// addErrorPage adds a page for each group of statuses. Those that NGINX uses within become
// 400, unless another one is written.
func addErrorPage(e *program.Effects, page program.ErrorPage, statuses []string, explicit bool) error {
	inner := page
	inner.Status = 400
	for _, text := range statuses {
		status, err := strconv.Atoi(text)
		switch {
		case err != nil || status < 300 || status > 599 || status == 499:
			return fmt.Errorf("invalid status %q: must be from 300 to 599, and not 499", text)
		case !explicit && status >= 494 && status <= 497:
			inner.Statuses = append(inner.Statuses, status)
		default:
			page.Statuses = append(page.Statuses, status)
		}
	}
	for _, p := range []program.ErrorPage{page, inner} {
		if p.Statuses != nil {
			e.ErrorPages = append(e.ErrorPages, p)
		}
	}
	return nil
}

func (p *parser) limitRate(s *scope, d *directive) error {
	value, err := p.template(d.Args[0])
	if err == nil && !strings.Contains(d.Args[0], "$") {
		_, err = argument.Size(d.Args)
	}
	if err != nil {
		return err
	}
	if d.Directive == "limit_rate" {
		s.effects.LimitRate = value
	} else {
		s.effects.LimitRateAfter = value
	}
	return nil
}

func (p *parser) defaultType(s *scope, d *directive) error {
	if strings.ContainsAny(d.Args[0], "\r\n") {
		return errors.New("the media type has several lines")
	}
	s.effects.DefaultType = d.Args[0]
	return nil
}

func (p *parser) accessLog(s *scope, d *directive) error {
	if len(d.Args) != 1 || d.Args[0] != "off" {
		return errors.New(`files of one's own are not written: must be "off"`)
	}
	s.effects.Unlogged = true
	return nil
}
