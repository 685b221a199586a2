package snippet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/syntax/snippet/argument"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

// header reads a name and a value. Line breaks in the value become a space, which is what
// HTTP says they mean.
func (p *parser) header(d *directive, name, value string) (program.Header, error) {
	if !argument.IsToken(name) {
		return program.Header{}, fmt.Errorf("invalid header name %q", name)
	}
	if err := checkFraming(d.Directive, name); err != nil {
		return program.Header{}, err
	}
	if strings.ContainsAny(value, "\r\n") {
		lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\r' || r == '\n' })
		for i := range lines {
			lines[i] = strings.Trim(lines[i], " \t")
		}
		value = strings.Trim(strings.Join(lines, " "), " ")
		p.warn(d, "the value of %s has several lines; they are joined, since a header can't have line breaks", name)
	}
	to, err := p.template(value)
	return program.Header{Name: name, Value: to}, err
}

func (p *parser) addHeader(s *scope, d *directive) error {
	h, err := p.header(d, d.Args[0], d.Args[1])
	if err != nil {
		return err
	}
	always := len(d.Args) == 3
	if always && d.Args[2] != "always" {
		return fmt.Errorf(`invalid parameter %q: must be "always"`, d.Args[2])
	}
	s.effects.AddHeaders = append(s.effects.AddHeaders, program.AddHeader{Header: h, Always: always})
	return nil
}

func (p *parser) proxySetHeader(s *scope, d *directive) error {
	h, err := p.header(d, d.Args[0], d.Args[1])
	if h.Name == "" {
		return err
	}
	to := &s.effects.RequestHeaders
	if d.Directive == "grpc_set_header" {
		to = &s.effects.GRPCHeaders
	} else if len(h.Value) > 0 {
		p.warnOwn(s, d, h.Name)
	}
	// Without its value the header is removed: else it would be the client's.
	*to = append(*to, h)
	return err
}

func (p *parser) hideHeader(s *scope, d *directive) error {
	name := strings.ToLower(d.Args[0])
	if !argument.IsToken(name) {
		return fmt.Errorf("invalid header name %q", d.Args[0])
	}
	to := &s.effects.HideHeaders
	if d.Directive == "proxy_pass_header" {
		to = &s.effects.PassHeaders
	}
	*to = append(*to, name)
	return nil
}

// moreHeaders reads a directive of the module headers-more: options, and any number of
// "NAME: VALUE".
func (p *parser) moreHeaders(s *scope, d *directive) error {
	var headers []program.MoreHeader
	like := program.MoreHeader{Clear: strings.HasPrefix(d.Directive, "more_clear")}
	input := strings.HasSuffix(d.Directive, "_input_headers")
	for i := 0; i < len(d.Args); i++ {
		option := d.Args[i]
		if !strings.HasPrefix(option, "-") {
			h, err := p.moreHeader(d, option, like.Clear)
			if err != nil {
				return err
			}
			headers = append(headers, h)
			continue
		}
		value := ""
		if option == "-s" || option == "-t" {
			if i++; i == len(d.Args) {
				return fmt.Errorf("the option %s has no value", option)
			}
			value = d.Args[i]
		}
		if err := readOption(&like, option, value, input); err != nil {
			return err
		}
	}
	if len(headers) == 0 {
		return errors.New("there is no header")
	}
	if !like.Clear {
		p.warnUnquoted(d)
	}
	to := &s.effects.ResponseHeaders
	if input {
		to = &s.effects.InputHeaders
	}
	for _, h := range headers {
		h.Statuses, h.Types, h.Present, h.Append = like.Statuses, like.Types, like.Present, like.Append
		*to = append(*to, h)
	}
	return nil
}

// warnUnquoted is about a value that stands apart from its name, and so is the name of a second header.
func (p *parser) warnUnquoted(d *directive) {
	for i, text := range d.Args[1:] {
		if name := d.Args[i]; strings.HasSuffix(name, ":") && !strings.Contains(text, ":") && !strings.HasPrefix(text, "-") {
			p.warn(d, "%q and %q are two headers without a value, and both are removed; for one with a value, write \"%s %s\" in quotes", name, text, name, text)
		}
	}
}

// readOption reads one option. Several of a kind add up.
func readOption(h *program.MoreHeader, option, value string, input bool) error {
	switch {
	case option == "-s" && !input:
		for _, text := range strings.Fields(value) {
			status, err := strconv.Atoi(text)
			if err != nil || status < 100 || status > 999 {
				return fmt.Errorf("invalid status %q: must be from 100 to 999", text)
			}
			h.Statuses = append(h.Statuses, status)
		}
	case option == "-t":
		h.Types = append(h.Types, strings.Fields(value)...)
	case option == "-r" && input && !h.Clear:
		h.Present = true
	case option == "-a" && !input && !h.Clear:
		h.Append = true
	default:
		return fmt.Errorf("invalid option %q", option)
	}
	return nil
}

// moreHeader reads one header. A space ends the name as well as a colon does.
func (p *parser) moreHeader(d *directive, text string, clears bool) (program.MoreHeader, error) {
	name, value := text, ""
	if end := strings.IndexAny(text, ": \t\r\n"); end >= 0 {
		name, value = text[:end], strings.TrimLeft(text[end:], ": \t\r\n")
	}
	if clears {
		value = ""
	}
	plain, wildcard := strings.CutSuffix(name, "*")
	h, err := p.header(d, plain, value)
	if err == nil && wildcard && value != "" {
		err = fmt.Errorf("invalid header name %q: an asterisk is allowed in names of headers that are removed", name)
	}
	h.Name = name
	return program.MoreHeader{Header: h, Clear: len(h.Value) == 0}, err
}

// expires reads the directive expires.
func (p *parser) expires(s *scope, d *directive) error {
	e := &program.Expires{Kind: "in"}
	text := d.Args[len(d.Args)-1]
	if len(d.Args) == 2 {
		if e.Kind = d.Args[0]; e.Kind != "modified" {
			return fmt.Errorf(`invalid value %q: must be "modified", or a time`, e.Kind)
		}
	}
	value, err := p.template(text)
	if err != nil {
		return err
	}
	if strings.Contains(text, "$") {
		e.Value = value
	} else if err := readExpiry(e, text); err != nil {
		return err
	}
	s.effects.Expires = e
	return nil
}

// readExpiry reads an expiry without variables.
func readExpiry(e *program.Expires, text string) error {
	if e.Kind == "in" && (text == "epoch" || text == "max" || text == "off") {
		e.Kind = text
		return nil
	}
	rest, negative := strings.CutPrefix(text, "-")
	if at, ok := strings.CutPrefix(text, "@"); ok && e.Kind == "in" {
		e.Kind, rest = "at", at
	} else if !negative {
		rest = strings.TrimPrefix(text, "+")
	}
	seconds, ok := argument.Seconds(rest)
	if !ok || e.Kind == "at" && seconds > 24*60*60 {
		return fmt.Errorf("invalid value %q: must be a time such as 30d or @12h, or epoch, max or off", text)
	}
	if e.Seconds = seconds; negative {
		e.Seconds = -seconds
	}
	return nil
}
