package unit

// A Change is one unit to put into the data plane or to delete there.
type Change struct {
	Kind Kind
	Name string
	// Needs is the generation from which on workers have every profile that
	// the unit names.
	Needs int
	// Version is a hash of Payload and Owner in lower-case hexadecimal digits.
	Version string
	// Owner is that of the Unit.
	Owner string
	// Same is the first of a row of versions with the same guards that ends with this
	// one; empty if that is this one. A worker that can't use this one, because of Needs,
	// may go on with a version of the same row, and with no other.
	Same    string
	Payload []byte
	// Delete deletes the unit. Only Kind and Name count then.
	Delete bool
}

// Key names the unit.
func (c Change) Key() Key { return Key{c.Kind, c.Name} }
