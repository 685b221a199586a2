package model

import "cmp"

// ClientHeader is how NGINX reads the headers of requests. Its zero values are NGINX's own.
type ClientHeader struct {
	// Buffer is the size in bytes of what is read first. What does not fit into it gets up to
	// LargeBuffers of LargeSize bytes each: no line may be longer.
	Buffer, LargeSize int64
	LargeBuffers      int
	// Underscores takes names with underscores, and Invalid all names that NGINX takes for
	// invalid, which are those as well.
	Underscores, Invalid bool
}

// NGINX's own sizes.
const (
	headerBuffer = 1 << 10
	largeBuffers = 4
	largeBuffer  = 8 << 10
)

// First is the size of the first buffer.
func (c ClientHeader) First() int64 { return cmp.Or(c.Buffer, headerBuffer) }

// Count is the number of further ones, and Size that of each.
func (c ClientHeader) Count() int { return cmp.Or(c.LargeBuffers, largeBuffers) }

// Size is the size of each of the further buffers.
func (c ClientHeader) Size() int64 { return cmp.Or(c.LargeSize, largeBuffer) }

// HasLookalikes reports whether two headers of a request can have names that only differ by
// underscores for hyphens.
func (c ClientHeader) HasLookalikes() bool { return c.Underscores || c.Invalid }
