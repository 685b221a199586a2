// Package limit declares all limits of what tenants and clients can take of Headgate.
// docs/limits.md is written from the declarations. A number stands only in the code
// that the limit is in: a declaration says where that is.
package limit

// A Limit bounds what tenants or clients can make Headgate do.
type Limit struct {
	// What is limited, and Per what: a host, a namespace, a worker.
	What, Per string
	// Is the number.
	Is Number
	// Key is the ConfigMap key that sets the number, whose default Is is then. It is
	// empty if the number is fixed.
	Key string
	// Beyond is what happens to more than that.
	Beyond string
	// Findings are those of docs/security.md that the limit closes, if there are any.
	Findings string
}

// A Group has the limits of one part of Headgate.
type Group struct {
	Title, About string
	Limits       []Limit
}

// A Number is where in the code the number of a limit stands.
type Number struct {
	// file is relative to the top folder.
	file string
	// name is that of a constant in Go or Lua, or else pattern finds the number by
	// its only group.
	name, pattern string
	unit          unit
}

// A unit says what a number counts.
type unit int

const (
	count unit = iota
	bytes
	seconds
	milliseconds
	kibibytes
	megabytes
	percent
	duration // in nanoseconds, as time.Duration
	one      // that is there, in words
)

// constant is a constant of Go or Lua in a file.
func constant(file, name string, u unit) Number { return Number{file: file, name: name, unit: u} }

// text is a number in a file that is not a constant.
func text(file, pattern string, u unit) Number { return Number{file: file, pattern: pattern, unit: u} }
