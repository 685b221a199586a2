package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model/form"
)

// Settings with a form of their own are texts in JSON. Reading them checks the form again,
// so that nothing comes into nginx.conf that the settings could not have.

// MarshalText is the text of the key.
func (c CPUAffinity) MarshalText() ([]byte, error) { return []byte(c.text), nil }

// UnmarshalText reads what MarshalText made.
func (c *CPUAffinity) UnmarshalText(text []byte) error { return form.Text(c, NewCPUAffinity, text) }

// MarshalText is the type, empty for the zero value.
func (m MIMEType) MarshalText() ([]byte, error) { return []byte(m.text), nil }

// UnmarshalText reads what MarshalText made.
func (m *MIMEType) UnmarshalText(text []byte) error { return form.Text(m, NewMIMEType, text) }

// MarshalText is the types.
func (m MIMETypes) MarshalText() ([]byte, error) { return []byte(m.text), nil }

// UnmarshalText reads what MarshalText made.
func (m *MIMETypes) UnmarshalText(text []byte) error { return form.Text(m, NewMIMETypes, text) }

// MarshalText is the name, empty for none.
func (h HeaderName) MarshalText() ([]byte, error) { return []byte(h.text), nil }

// UnmarshalText reads what MarshalText made.
func (h *HeaderName) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*h = HeaderName{}
		return nil
	}
	return form.Text(h, NewHeaderName, text)
}

// MarshalText is the list.
func (c Ciphers) MarshalText() ([]byte, error) { return []byte(c.text), nil }

// UnmarshalText reads what MarshalText made.
func (c *Ciphers) UnmarshalText(text []byte) error { return form.Text(c, NewCiphers, text) }

// MarshalText is String.
func (c Curves) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText made.
func (c *Curves) UnmarshalText(text []byte) error { return form.Text(c, NewCurves, text) }

// MarshalText is the text.
func (a AdminText) MarshalText() ([]byte, error) { return []byte(a.text), nil }

// UnmarshalText reads what MarshalText made.
func (a *AdminText) UnmarshalText(text []byte) error { return form.Text(a, NewAdminText, text) }

// MarshalText is the name.
func (n AdminName) MarshalText() ([]byte, error) { return []byte(n.text), nil }

// UnmarshalText reads what MarshalText made.
func (n *AdminName) UnmarshalText(text []byte) error {
	name, ok := NewAdminName(string(text))
	if !ok {
		return fmt.Errorf("%.60q: must be letters, digits and underscores", text)
	}
	*n = name
	return nil
}

// MarshalText is the expression as it is written and, on the next line, as NGINX compiles it.
func (u UserAgents) MarshalText() ([]byte, error) { return []byte(u.text + "\n" + u.expression), nil }

// UnmarshalText reads what MarshalText made.
func (u *UserAgents) UnmarshalText(text []byte) error {
	return form.Text(u, func(text string) (UserAgents, error) {
		written, expression, _ := strings.Cut(text, "\n")
		return NewUserAgents(written, expression)
	}, text)
}

// UnmarshalJSON reads a kind that is known.
func (k *PathKind) UnmarshalJSON(text []byte) error { return form.Number(k, int(Pattern)+1, text) }

// UnmarshalJSON reads a check that is known.
func (c *Check) UnmarshalJSON(text []byte) error { return form.Number(c, int(CheckVerified)+1, text) }

// The words of a profile's text before its values.
const (
	profileTLS      = "tls"
	profileAsClient = "as-client"
	profileAccess   = "access"
)

// MarshalText is the protocol, what is set, and the values, with a space between them.
func (p Profile) MarshalText() ([]byte, error) {
	words := []string{p.Protocol.String()}
	for _, flag := range []struct {
		set  bool
		word string
	}{{p.TLS, profileTLS}, {p.AsClient, profileAsClient}, {p.Access, profileAccess}} {
		if flag.set {
			words = append(words, flag.word)
		}
	}
	if p.values != "" {
		words = append(words, p.values)
	}
	return []byte(strings.Join(words, " ")), nil
}

// UnmarshalText reads what MarshalText made.
func (p *Profile) UnmarshalText(text []byte) error {
	read := Profile{Protocol: -1}
	var values []ProfileValue
	for i, word := range strings.Fields(string(text)) {
		switch {
		case i == 0:
			for _, protocol := range []Protocol{HTTP, GRPC, FastCGI} {
				if protocol.String() == word {
					read.Protocol = protocol
				}
			}
		case word == profileTLS:
			read.TLS = true
		case word == profileAsClient:
			read.AsClient = true
		case word == profileAccess:
			read.Access = true
		default:
			v, err := readProfileValue(word)
			if err != nil {
				return err
			}
			values = append(values, v)
		}
	}
	if read.Protocol < 0 {
		return errors.New("a profile must begin with http, grpc or fastcgi")
	}
	*p = read.With(values...)
	return nil
}

func readProfileValue(word string) (ProfileValue, error) {
	if name, text, is := strings.Cut(word, ":"); is {
		if text == "" || strings.Trim(text, profileText) != "" {
			return ProfileValue{}, fmt.Errorf("the value %.60q of a profile must be digits, letters from a to f, and commas", word)
		}
		return ProfileValue{Name: name, Text: text}, nil
	}
	name, text, _ := strings.Cut(word, "=")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || name == "" {
		return ProfileValue{}, fmt.Errorf("the value %.60q of a profile must be NAME=NUMBER", word)
	}
	return ProfileValue{Name: name, Number: number}, nil
}

// A Raw is plain data that is encoded already. It compares with ==, as all values of policies do.
type Raw string

// MarshalJSON is the data.
func (r Raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func raw(text json.RawMessage) any {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	return Raw(text)
}

// UnmarshalJSON keeps the value encoded: features that would read it are where it was made.
func (p *Policy) UnmarshalJSON(text []byte) error {
	var read struct {
		Feature   string
		Value     json.RawMessage
		OfProfile bool
	}
	if err := form.Strictly(text, &read); err != nil {
		return err
	}
	*p = Policy{Feature: read.Feature, Value: raw(read.Value), OfProfile: read.OfProfile}
	return nil
}

// UnmarshalJSON keeps the name encoded.
func (t *Trace) UnmarshalJSON(text []byte) error {
	var read struct {
		On, Distrusts bool
		Name          json.RawMessage
	}
	if err := form.Strictly(text, &read); err != nil {
		return err
	}
	*t = Trace{On: read.On, Distrusts: read.Distrusts, Name: raw(read.Name)}
	return nil
}
