package pcre

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// oldName is the file of PCRE 1, to which the Lua module of Debian 12 is linked.
const oldName = "libpcre.so.3"

// doubleX matches an option that PCRE 1 takes for another one.
var doubleX = regexp.MustCompile(`\(\?[A-Za-z^]*xx`)

// oldCaseless is PCRE_CASELESS of pcre.h.
const oldCaseless = 0x00000001

// oldLibrary holds the functions of PCRE 1.
type oldLibrary struct {
	compile func(pattern *byte, options int32, message **byte, offset *int32, tables uintptr) handle
	free    func(code handle)
}

// AlsoOld makes Compile reject also what PCRE 1 rejects. To be called once at the start
// if NGINX's Lua module has that library: it would answer 500 for such patterns.
func AlsoOld() error {
	lib, err := opened()
	if err != nil {
		return err
	}
	file, err := purego.Dlopen(oldName, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return fmt.Errorf("load %s, which on Debian is in the package libpcre3: %w", oldName, err)
	}
	compile, err := purego.Dlsym(file, "pcre_compile")
	if err != nil {
		return fmt.Errorf("use %s: %w", oldName, err)
	}
	// What pcre_compile returns is from malloc.
	free, err := purego.Dlsym(purego.RTLD_DEFAULT, "free")
	if err != nil {
		return fmt.Errorf("use %s: %w", oldName, err)
	}
	old := &oldLibrary{}
	purego.RegisterFunc(&old.compile, compile)
	purego.RegisterFunc(&old.free, free)
	lib.old.Store(old)
	return nil
}

// check returns why PCRE 1 rejects a text, if it does. The text may have prefix bytes
// that the pattern has not.
func (old *oldLibrary) check(text string, prefix, length int, o Options) error {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return &PatternError{Offset: min(max(0, at-prefix), length), Message: "PCRE 1 takes no NUL"}
	}
	if at := doubleX.FindStringIndex(text); at != nil {
		return &PatternError{Offset: min(max(0, at[0]-prefix), length), Message: "PCRE 1, which this NGINX has, reads (?xx) as (?x)"}
	}
	var options int32
	if o.Caseless {
		options = oldCaseless
	}
	var message *byte
	var offset int32
	terminated := []byte(text + "\x00")
	code := old.compile(&terminated[0], options, &message, &offset, 0)
	runtime.KeepAlive(terminated)
	if code == 0 {
		return &PatternError{
			Offset: min(max(0, int(offset)-prefix), length), Message: "PCRE 1, which this NGINX has, rejects it: " + textAt(message),
		}
	}
	old.free(code)
	return nil
}

// textAt is a text of the library that ends with NUL.
func textAt(start *byte) string {
	if start == nil {
		return "unknown error"
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(start), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(start, n))
}
