package model

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
)

// leastBody is the least BodyStep, in bytes.
const leastBody = 1 << 10

// Strictest is p with the least that any profile allows in the place of what
// Within looks at.
func (p Profile) Strictest() Profile {
	p.BodyStep, p.MeasureBody, p.RequestBuffering, p.Retry = leastBody, true, true, 0
	return p
}

// Within tells whether p may stand in for the profile that was asked for: it
// takes no larger bodies, and sends no request again that was not to be. Buffers and what else changes no answer may
// differ either way; what is not named here must be the same, since access may
// depend on it.
func (p Profile) Within(asked Profile) bool {
	switch {
	case asked.BodyStep == 0:
	case p.BodyStep == 0 || p.BodyStep > asked.BodyStep:
		return false
	case p.BodyStep == asked.BodyStep && asked.MeasureBody && !p.MeasureBody:
		return false
	}
	if p.Retry&^asked.Retry != 0 {
		return false
	}
	rest := p
	rest.BodyStep, rest.MeasureBody, rest.Retry = asked.BodyStep, asked.MeasureBody, asked.Retry
	rest.Buffering, rest.RequestBuffering, rest.OldProtocol = asked.Buffering, asked.RequestBuffering, asked.OldProtocol
	rest.BufferSize, rest.Buffers, rest.BusyBuffers = asked.BufferSize, asked.Buffers, asked.BusyBuffers
	rest.BodyBuffer, rest.TempFile, rest.RetryTime = asked.BodyBuffer, asked.TempFile, asked.RetryTime
	return rest == asked
}

// One doubling of a size is that far, and so is one outcome more or less.
const doubled = 1024

// Distance says how far p is from the profile that was asked for: sizes by how
// often one must be doubled to be the other. It is 0 for the same one alone.
func (p Profile) Distance(asked Profile) int64 {
	const toggled = 8 * doubled
	var distance int64
	for _, pair := range [][2]int64{
		{p.BufferSize, asked.BufferSize}, {int64(p.Buffers), int64(asked.Buffers)}, {p.BusyBuffers, asked.BusyBuffers},
		{p.BodyBuffer, asked.BodyBuffer}, {p.TempFile, asked.TempFile}, {unlimited(p.BodyStep), unlimited(asked.BodyStep)},
		{unlimited(int64(p.RetryTime)), unlimited(int64(asked.RetryTime))},
	} {
		distance += doublings(pair[0], pair[1])
	}
	// An answer whose header does not fit its buffer is lost; a larger buffer
	// only takes memory.
	if p.BufferSize < asked.BufferSize {
		distance += 8 * doublings(p.BufferSize, asked.BufferSize)
	}
	for _, differ := range []bool{
		p.Buffering != asked.Buffering, p.RequestBuffering != asked.RequestBuffering, p.OldProtocol != asked.OldProtocol, p.MeasureBody != asked.MeasureBody,
	} {
		if differ {
			distance += toggled
		}
	}
	return distance + doubled*int64(bits.OnesCount16(uint16(p.Retry^asked.Retry)))
}

// unlimited is a limit of which 0 means none.
func unlimited(limit int64) int64 {
	if limit == 0 {
		return 1 << 62
	}
	return limit
}

// doublings is the logarithm of the ratio, straight between powers of two, and
// 0 for equal sizes alone.
func doublings(a, b int64) int64 {
	small, large := max(1, min(a, b)), max(1, a, b)
	if small == large {
		return min(1, a^b)
	}
	whole := bits.Len64(uint64(large/small)) - 1
	part := ((large >> whole) - small) * doubled / small
	return max(1, int64(whole)*doubled+part)
}

// Against lists what of p is not as it was asked for.
func (p Profile) Against(asked Profile) string {
	var list []string
	is, was := reflect.ValueOf(p), reflect.ValueOf(asked)
	for i := range is.NumField() {
		if a, b := is.Field(i).Interface(), was.Field(i).Interface(); a != b {
			list = append(list, fmt.Sprintf("%s %v, not %v", is.Type().Field(i).Name, a, b))
		}
	}
	return strings.Join(list, "; ")
}
