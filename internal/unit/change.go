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

// Put is the change that puts a unit.
func Put(u Unit, needs int) Change {
	return Change{Kind: u.Kind, Name: u.Name, Needs: needs, Version: u.Version, Payload: u.Payload}
}

// Delete is the change that deletes a unit.
func Delete(key Key) Change { return Change{Kind: key.Kind, Name: key.Name, Delete: true} }

// Key names the unit.
func (c Change) Key() Key { return Key{c.Kind, c.Name} }
