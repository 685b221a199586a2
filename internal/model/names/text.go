package names

import (
	"strings"

	"github.com/headgate/headgate/internal/model/form"
)

// Lists are texts in JSON, the names with a space between them. Reading them checks the names again.

// spaced has a function read names with a space between them.
func spaced[T any](read func(...string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) { return read(strings.Fields(text)...) }
}

// MarshalText is the names.
func (h Headers) MarshalText() ([]byte, error) { return []byte(h.names), nil }

// UnmarshalText reads what MarshalText made.
func (h *Headers) UnmarshalText(text []byte) error { return form.Text(h, spaced(NewHeaders), text) }

// MarshalText is the protocols.
func (u Upgrades) MarshalText() ([]byte, error) { return []byte(u.names), nil }

// UnmarshalText reads what MarshalText made.
func (u *Upgrades) UnmarshalText(text []byte) error { return form.Text(u, spaced(NewUpgrades), text) }

// MarshalText is the names.
func (p Parameters) MarshalText() ([]byte, error) { return []byte(p.names), nil }

// UnmarshalText reads what MarshalText made.
func (p *Parameters) UnmarshalText(text []byte) error {
	return form.Text(p, spaced(NewParameters), text)
}
