package pcre

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

const (
	// pairs is how many positions a match writes: the whole and each group.
	pairs = MaxGroups + 1
	// jitStackStart is what the JIT's stack has before it grows, in bytes, as
	// NGINX's Lua module has it.
	jitStackStart = 32 << 10
	// heapLimit is for the interpreter, in KiB; machine code has its stack.
	heapLimit = 32 << 10
)

// Results of a match that reached a limit, from pcre2.h.
const (
	errorJITStack   = -46
	errorMatchLimit = -47
	errorDepthLimit = -53
	errorHeapLimit  = -63
)

// scratch is the memory of one match at a time.
type scratch struct {
	scratchMemory
	// found is in the library's memory, and valid as long as data is.
	found *[2 * pairs]uintptr
}

type scratchMemory struct{ data, context, stack handle }

func (lib *library) newScratch() (*scratch, error) {
	m := scratchMemory{
		data:    lib.matchDataCreate(pairs, 0),
		context: lib.matchContextCreate(0),
		stack:   lib.jitStackCreate(jitStackStart, JITStack, 0),
	}
	if m.data == 0 || m.context == 0 || m.stack == 0 {
		lib.freeScratch(m)
		return nil, errors.New("no memory for matching")
	}
	lib.setMatchLimit(m.context, MatchLimit)
	lib.setHeapLimit(m.context, heapLimit)
	lib.jitStackAssign(m.context, 0, m.stack)
	s := &scratch{scratchMemory: m, found: lib.ovector(m.data)}
	runtime.AddCleanup(s, lib.freeScratch, m)
	return s, nil
}

// freeScratch also accepts memory that was never created.
func (lib *library) freeScratch(m scratchMemory) {
	lib.matchDataFree(m.data)
	lib.matchContextFree(m.context)
	lib.jitStackFree(m.stack)
}

// run matches and returns how many pairs of s.found it wrote, 0 without a match.
func (lib *library) run(code handle, subject string, s *scratch) (int, error) {
	result, _, _ := purego.SyscallN(lib.match, uintptr(code), uintptr(unsafe.Pointer(bytesOf(subject))), uintptr(len(subject)),
		0, 0, uintptr(s.data), uintptr(s.context))
	switch n := int32(result); n {
	case errorNoMatch:
		return 0, nil
	case errorJITStack, errorMatchLimit, errorDepthLimit, errorHeapLimit:
		return 0, ErrLimit
	default:
		if n < 1 || n > pairs {
			return 0, fmt.Errorf("match: %s", lib.message(n))
		}
		return int(n), nil
	}
}
