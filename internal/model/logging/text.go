package logging

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"github.com/headgate/headgate/internal/model/form"
)

// Settings with a form of their own are texts in JSON. Reading them checks the form again,
// so that nothing comes into nginx.conf that the settings could not have.

// usualOutput stands for the usual output of a Target.
const usualOutput = "usual"

// MarshalText is the target.
func (t Target) MarshalText() ([]byte, error) {
	if t.usual {
		return []byte(usualOutput), nil
	}
	return []byte(t.text), nil
}

// UnmarshalText reads what MarshalText made.
func (t *Target) UnmarshalText(text []byte) error {
	return form.Text(t, func(text string) (Target, error) { return newLogTarget(text, usualOutput) }, text)
}

// MarshalText is the form as it is written.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.text), nil }

// UnmarshalText reads what MarshalText made.
func (f *Format) UnmarshalText(text []byte) error { return form.Text(f, NewFormat, text) }

// MarshalText is the form as it is written.
func (f StreamFormat) MarshalText() ([]byte, error) { return []byte(f.text), nil }

// UnmarshalText reads what MarshalText made.
func (f *StreamFormat) UnmarshalText(text []byte) error { return form.Text(f, NewStreamFormat, text) }

// MarshalText is the parameters.
func (o Options) MarshalText() ([]byte, error) { return []byte(o.text), nil }

// UnmarshalText reads what MarshalText made.
func (o *Options) UnmarshalText(text []byte) error { return form.Text(o, NewOptions, text) }

// MarshalText is the name of the level.
func (l ErrorLevel) MarshalText() ([]byte, error) { return []byte(l.name), nil }

// UnmarshalText reads what MarshalText made.
func (l *ErrorLevel) UnmarshalText(text []byte) error { return form.Text(l, NewErrorLevel, text) }

// MarshalText is the host and the port.
func (s Syslog) MarshalText() ([]byte, error) { return []byte(s.address), nil }

// UnmarshalText reads what MarshalText made.
func (s *Syslog) UnmarshalText(text []byte) error { return form.Text(s, readSyslog, text) }

func readSyslog(text string) (Syslog, error) {
	if text == "" {
		return Syslog{}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Syslog{}, fmt.Errorf("%.60q: must be HOST:PORT", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Syslog{}, fmt.Errorf("%.60q: must be HOST:PORT", text)
	}
	if host, err = NewSyslogHost(host); err != nil {
		return Syslog{}, err
	}
	return NewSyslog(host, int(number)), nil
}

// UnmarshalJSON reads a way to escape that is known.
func (e *Escape) UnmarshalJSON(text []byte) error { return form.Number(e, int(EscapeNone)+1, text) }

// encodedURLs are SkippedURLs in JSON.
type encodedURLs struct {
	Text            string
	Whole, Patterns []string
}

// MarshalJSON is the text, and the URLs and expressions in it.
func (s SkippedURLs) MarshalJSON() ([]byte, error) {
	return json.Marshal(encodedURLs{s.text, s.whole, s.patterns})
}

// UnmarshalJSON reads what MarshalJSON made.
func (s *SkippedURLs) UnmarshalJSON(text []byte) error {
	var read encodedURLs
	if err := form.Strictly(text, &read); err != nil {
		return err
	}
	*s = NewSkippedURLs(read.Text, read.Whole, read.Patterns)
	return nil
}
