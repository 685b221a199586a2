package unit

// A Change is one unit to put into the data plane or to delete there.
type Change struct {
	Kind Kind
	Name string
	// Needs is the generation from which on workers have every profile that
	// the unit names.
	Needs int
	// Version is a hash of Payload in lower-case hexadecimal digits.
	Version string
	Payload []byte
	// Delete deletes the unit. Only Kind and Name count then.
	Delete bool
}

// Key names the unit.
func (c Change) Key() Key { return Key{c.Kind, c.Name} }
