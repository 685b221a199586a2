package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
)

// Settings with a form of their own are texts in JSON. Reading them checks the form again,
// so that nothing comes into nginx.conf that the settings could not have.

func readText[T any](into *T, read func(string) (T, error), text []byte) (err error) {
	*into, err = read(string(text))
	return err
}

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
	return readText(t, func(text string) (Target, error) { return newLogTarget(text, usualOutput) }, text)
}

// MarshalText is the form as it is written.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.text), nil }

// UnmarshalText reads what MarshalText made.
func (f *Format) UnmarshalText(text []byte) error { return readText(f, NewFormat, text) }

// MarshalText is the form as it is written.
func (f StreamFormat) MarshalText() ([]byte, error) { return []byte(f.text), nil }

// UnmarshalText reads what MarshalText made.
func (f *StreamFormat) UnmarshalText(text []byte) error { return readText(f, NewStreamFormat, text) }

// MarshalText is the parameters.
func (o Options) MarshalText() ([]byte, error) { return []byte(o.text), nil }

// UnmarshalText reads what MarshalText made.
func (o *Options) UnmarshalText(text []byte) error { return readText(o, NewOptions, text) }

// MarshalText is the name of the level.
func (l ErrorLevel) MarshalText() ([]byte, error) { return []byte(l.name), nil }

// UnmarshalText reads what MarshalText made.
func (l *ErrorLevel) UnmarshalText(text []byte) error { return readText(l, NewErrorLevel, text) }

// MarshalText is the host and the port.
func (s Syslog) MarshalText() ([]byte, error) { return []byte(s.address), nil }

// UnmarshalText reads what MarshalText made.
func (s *Syslog) UnmarshalText(text []byte) error { return readText(s, readSyslog, text) }

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
func (e *Escape) UnmarshalJSON(text []byte) error {
	number, err := strconv.Atoi(string(text))
	if err != nil || number < 0 || number > int(EscapeNone) {
		return fmt.Errorf("%.60q: must be a number from 0 to %d", text, EscapeNone)
	}
	*e = Escape(number)
	return nil
}

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
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return err
	}
	*s = NewSkippedURLs(read.Text, read.Whole, read.Patterns)
	return nil
}
