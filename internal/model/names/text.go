package names

import "strings"

// Lists are texts in JSON, the names with a space between them. Reading them checks the names again.

// readNames reads such a text.
func readNames[T any](into *T, read func(...string) (T, error), text []byte) (err error) {
	*into, err = read(strings.Fields(string(text))...)
	return err
}

// MarshalText is the names.
func (h Headers) MarshalText() ([]byte, error) { return []byte(h.names), nil }

// UnmarshalText reads what MarshalText made.
func (h *Headers) UnmarshalText(text []byte) error { return readNames(h, NewHeaders, text) }

// MarshalText is the protocols.
func (u Upgrades) MarshalText() ([]byte, error) { return []byte(u.names), nil }

// UnmarshalText reads what MarshalText made.
func (u *Upgrades) UnmarshalText(text []byte) error { return readNames(u, NewUpgrades, text) }

// MarshalText is the names.
func (p Parameters) MarshalText() ([]byte, error) { return []byte(p.names), nil }

// UnmarshalText reads what MarshalText made.
func (p *Parameters) UnmarshalText(text []byte) error {
	return readNames(p, NewParameters, text)
}
