package pcre

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libraryName is the file that NGINX is linked to. Its binary interface has not
// changed since PCRE2 10.0.
const libraryName = "libpcre2-8.so.0"

// From pcre2.h.
const (
	optionCaseless   = 0x00000008
	optionAnchored   = 0x80000000
	jitComplete      = 0x00000001
	infoAllOptions   = 0
	infoCaptureCount = 4
	infoJITSize      = 10
	infoSize         = 22
	configVersion    = 11
	errorNoMatch     = -1
)

// handle is an address in the library's own memory, which Go never reads.
type handle uintptr

// library holds the functions of libpcre2-8. They may be called from many
// threads at once.
type library struct {
	version string
	// jit reports whether patterns can become machine code on this machine.
	jit bool
	// match is called through its address, which costs a quarter of a call
	// through a function value.
	match uintptr
	// scratches keeps them from one match to the next.
	scratches sync.Pool
	// old is the library that has to accept patterns too, nil for none.
	old atomic.Pointer[oldLibrary]

	config             func(what uint32, where *byte) int32
	compile            func(pattern *byte, length uintptr, options uint32, code *int32, offset *uintptr, context handle) handle
	codeFree           func(code handle)
	jitCompile         func(code handle, options uint32) int32
	patternInfo        func(code handle, what uint32, where unsafe.Pointer) int32
	errorMessage       func(code int32, buffer *byte, length uintptr) int32
	matchDataCreate    func(pairs uint32, context handle) handle
	matchDataFree      func(data handle)
	ovector            func(data handle) *[2 * pairs]uintptr
	matchContextCreate func(context handle) handle
	matchContextFree   func(context handle)
	setMatchLimit      func(context handle, limit uint32) int32
	setHeapLimit       func(context handle, kibibytes uint32) int32
	jitStackCreate     func(start, most uintptr, context handle) handle
	jitStackFree       func(stack handle)
	jitStackAssign     func(context, callback, stack handle)
}

var opened = sync.OnceValues(open)

// Version returns the library's version, such as "10.46 2025-08-27". If the
// library is missing, Version and every Compile return the same error, so call it
// once at the start.
func Version() (string, error) {
	lib, err := opened()
	if err != nil {
		return "", err
	}
	return lib.version, nil
}

func open() (*library, error) {
	file, err := purego.Dlopen(libraryName, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load %s, which on Debian and Ubuntu is in the package libpcre2-8-0: %w", libraryName, err)
	}
	lib := &library{}
	for name, function := range map[string]any{
		"pcre2_config_8":               &lib.config,
		"pcre2_compile_8":              &lib.compile,
		"pcre2_code_free_8":            &lib.codeFree,
		"pcre2_jit_compile_8":          &lib.jitCompile,
		"pcre2_pattern_info_8":         &lib.patternInfo,
		"pcre2_get_error_message_8":    &lib.errorMessage,
		"pcre2_match_data_create_8":    &lib.matchDataCreate,
		"pcre2_match_data_free_8":      &lib.matchDataFree,
		"pcre2_get_ovector_pointer_8":  &lib.ovector,
		"pcre2_match_context_create_8": &lib.matchContextCreate,
		"pcre2_match_context_free_8":   &lib.matchContextFree,
		"pcre2_set_match_limit_8":      &lib.setMatchLimit,
		"pcre2_set_heap_limit_8":       &lib.setHeapLimit,
		"pcre2_jit_stack_create_8":     &lib.jitStackCreate,
		"pcre2_jit_stack_free_8":       &lib.jitStackFree,
		"pcre2_jit_stack_assign_8":     &lib.jitStackAssign,
	} {
		symbol, err := purego.Dlsym(file, name)
		if err != nil {
			return nil, fmt.Errorf("use %s: %w", libraryName, err)
		}
		purego.RegisterFunc(function, symbol)
	}
	if lib.match, err = purego.Dlsym(file, "pcre2_match_8"); err != nil {
		return nil, fmt.Errorf("use %s: %w", libraryName, err)
	}
	return lib, lib.probe()
}

// probe asks the library for its version and tries its JIT.
func (lib *library) probe() error {
	var version [64]byte
	n := lib.config(configVersion, &version[0])
	if n < 1 || int(n) > len(version) {
		return fmt.Errorf("use %s: it does not report its version", libraryName)
	}
	lib.version = string(version[:n-1])
	code, err := lib.compileText("a", 0)
	if err != nil {
		return fmt.Errorf("use %s: %w", libraryName, err)
	}
	defer lib.codeFree(code)
	lib.jit = lib.jitCompile(code, jitComplete) == 0
	return nil
}

// compileText compiles as NGINX's Lua module does. The caller frees the result.
func (lib *library) compileText(text string, options uint32) (handle, error) {
	var code int32
	var offset uintptr
	pattern := bytesOf(text)
	compiled := lib.compile(pattern, uintptr(len(text)), options, &code, &offset, 0)
	runtime.KeepAlive(pattern)
	if compiled == 0 {
		return 0, &PatternError{Offset: min(int(offset), len(text)), Message: lib.message(code)}
	}
	return compiled, nil
}

func (lib *library) message(code int32) string {
	var text [256]byte
	n := lib.errorMessage(code, &text[0], uintptr(len(text)))
	if n < 0 {
		return fmt.Sprintf("PCRE's error %d", code)
	}
	return string(text[:n])
}

// property is one of a compiled pattern: PCRE has some as uint32, and sizes as size_t.
func property[N uint32 | uintptr](lib *library, code handle, what uint32) (n N) {
	lib.patternInfo(code, what, unsafe.Pointer(&n))
	return n
}

// bytesOf returns the start of the text. For an empty one it is not nil, since
// older libraries reject nil.
func bytesOf(text string) *byte {
	if text == "" {
		return new(byte)
	}
	return unsafe.StringData(text)
}
