package snippet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

func isToken(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return text != ""
}

// header reads a name and a value. Line breaks in the value become a space, which is what
// HTTP says they mean.
func (p *parser) header(d *directive, name, value string) (Header, error) {
	if !isToken(name) {
		return Header{}, fmt.Errorf("invalid header name %q", name)
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
	return Header{Name: name, Value: to}, err
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
	s.effects.AddHeaders = append(s.effects.AddHeaders, AddHeader{Header: h, Always: always})
	return nil
}

func (p *parser) proxySetHeader(s *scope, d *directive) error {
	h, err := p.header(d, d.Args[0], d.Args[1])
	if err != nil {
		return err
	}
	to := &s.effects.RequestHeaders
	if d.Directive == "grpc_set_header" {
		to = &s.effects.GRPCHeaders
	}
	*to = append(*to, h)
	return nil
}

func (p *parser) hideHeader(s *scope, d *directive) error {
	name := strings.ToLower(d.Args[0])
	if !isToken(name) {
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
	var headers []MoreHeader
	like := MoreHeader{Clear: strings.HasPrefix(d.Directive, "more_clear")}
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
		if err := like.option(option, value, input); err != nil {
			return err
		}
	}
	if len(headers) == 0 {
		return errors.New("there is no header")
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

// option reads one option. Several of a kind add up.
func (h *MoreHeader) option(option, value string, input bool) error {
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

// moreHeader reads one header. A blank ends the name as well as a colon does.
func (p *parser) moreHeader(d *directive, text string, clears bool) (MoreHeader, error) {
	name, value := strings.TrimLeft(text, " \t\r\n"), ""
	if end := strings.IndexAny(name, ": \t\r\n"); end >= 0 {
		name, value = name[:end], strings.TrimLeft(name[end:], ": \t\r\n")
	}
	if clears {
		value = ""
	}
	h, err := p.header(d, strings.TrimSuffix(name, "*"), value)
	h.Name = name
	return MoreHeader{Header: h, Clear: len(h.Value) == 0}, err
}
