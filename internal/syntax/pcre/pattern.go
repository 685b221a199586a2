// Package pcre validates patterns and matches text exactly as NGINX's Lua module
// does: it calls the same library with the same options and limits, so both
// accept the same patterns, find the same matches and stop at the same limits.
//
// The equivalent in Lua is ngx.re.match(subject, pattern.Text(), "joi"), or "jo"
// for a case-sensitive pattern, in an NGINX with lua_regex_match_limit MatchLimit
// and ngx.re.opt("jit_stack_size", JITStack).
//
// The package does not know hosts, paths and headers. A pattern comes from a
// tenant and its subject from a client; neither may cost much.
package pcre

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
)

const (
	// MatchLimit is how many steps a match may take, for lua_regex_match_limit.
	// Useful patterns take a few thousand on the longest path; this many usually
	// take 1 ms, and 20 ms in the worst known case.
	MatchLimit = 10_000
	// JITStack is how large a match's stack may become, in bytes, for ngx.re.opt's
	// jit_stack_size. With PCRE's own 32 KiB "(a|b)*" fails on 4,000 bytes.
	JITStack = 256 << 10
	// MaxLength is the maximum length of a pattern's text, in bytes.
	MaxLength = 4096
	// MaxGroups is how many capturing groups a pattern may have.
	MaxGroups = 99
	// maxCompiled is the maximum size of a compiled pattern, in bytes. Its machine
	// code is about ten times as large.
	maxCompiled = 16 << 10
)

// ErrLimit says that a match ended at a limit, of steps or of the stack. It means
// neither "matches" nor "does not match".
var ErrLimit = errors.New("the pattern takes too many steps on this text")

// PatternError says why a pattern can't be used.
type PatternError struct {
	// Offset is where in the pattern PCRE or Compile stopped, in bytes.
	Offset int
	// Message is PCRE's own, or says what Compile rejects.
	Message string
}

func (e *PatternError) Error() string { return fmt.Sprintf("at offset %d: %s", e.Offset, e.Message) }

// Options are those of ngx.re.match.
type Options struct {
	// Caseless makes ASCII letters match in both cases: the flag "i".
	Caseless bool
}

// Pattern is a compiled pattern. It may be used by many goroutines at once.
type Pattern struct {
	lib    *library
	code   handle
	text   string
	groups int
}

// verb matches "(*" and a capital: the beginning of a setting, such as (*UTF), or
// of a control of backtracking, such as (*SKIP).
var verb = regexp.MustCompile(`\(\*[A-Z]`)

// wholeRecursion matches a pattern's call of itself.
var wholeRecursion = regexp.MustCompile(`\(\?(?:R|0+)\)|\\g[<']0+[>']`)

// searchStart and searchEnd turn a pattern that may match anywhere into one that
// is tried at the start only, with the same result.
const searchStart, searchEnd = `\A(?s:.*?)\K(?:`, `)`

// Compile compiles a pattern. Its error is a *PatternError for an invalid
// pattern, and another one if the library is missing or out of memory.
//
// Beside invalid patterns it rejects those that could affect other tenants:
//   - a pattern that is longer than MaxLength, has more groups than MaxGroups, or
//     becomes too large when it is compiled;
//   - (*VERBS): (*NO_JIT) makes NGINX use the interpreter, whose memory it does
//     not limit; with (*UTF) each request with invalid UTF-8 is an error;
//     (*LIMIT_MATCH=) changes the limits;
//   - a pattern that JIT can't compile, where JIT works, since it would need the
//     interpreter too.
//
// PCRE counts steps from 0 again at every position where a match may start, so
// MatchLimit alone does not limit a pattern that is not anchored. Compile adds
// searchStart to such a pattern, which looks for the position itself, so that all
// steps are counted together; see Text. A pattern that calls itself as a whole
// must be anchored, since the call would include searchStart.
func Compile(pattern string, o Options) (*Pattern, error) {
	lib, err := opened()
	if err != nil {
		return nil, err
	}
	return lib.pattern(pattern, o)
}

func (lib *library) pattern(pattern string, o Options) (*Pattern, error) {
	if err := checkText(pattern); err != nil {
		return nil, err
	}
	code, err := lib.compileText(pattern, o.bits())
	if err != nil {
		return nil, err
	}
	text := pattern
	if property[uint32](lib, code, infoAllOptions)&optionAnchored == 0 {
		lib.codeFree(code)
		text = searchStart + pattern + searchEnd
		if code, err = lib.compileSearch(pattern, text, o); err != nil {
			return nil, err
		}
	}
	if err := lib.finish(code, len(pattern)); err != nil {
		lib.codeFree(code)
		return nil, err
	}
	if old := lib.old.Load(); old != nil {
		if err := old.check(text, strings.Index(text, pattern), len(pattern), o); err != nil {
			lib.codeFree(code)
			return nil, err
		}
	}
	return lib.newPattern(code, text), nil
}

// Load compiles the result of Text. It does not check it again: with searchStart
// the text may be longer than MaxLength.
func Load(text string, o Options) (*Pattern, error) {
	lib, err := opened()
	if err != nil {
		return nil, err
	}
	code, err := lib.compileText(text, o.bits())
	if err != nil {
		return nil, err
	}
	lib.jitCompile(code, jitComplete)
	return lib.newPattern(code, text), nil
}

func (lib *library) newPattern(code handle, text string) *Pattern {
	p := &Pattern{lib: lib, code: code, text: text, groups: int(property[uint32](lib, code, infoCaptureCount))}
	runtime.AddCleanup(p, lib.codeFree, code)
	return p
}

func (o Options) bits() uint32 {
	if o.Caseless {
		return optionCaseless
	}
	return 0
}

func checkText(pattern string) error {
	if len(pattern) > MaxLength {
		return &PatternError{Offset: MaxLength, Message: fmt.Sprintf("the pattern has %d bytes, %d are allowed", len(pattern), MaxLength)}
	}
	for _, at := range verb.FindAllStringIndex(pattern, -1) {
		before := pattern[:at[0]]
		if backslashes := len(before) - len(strings.TrimRight(before, `\`)); backslashes%2 == 0 {
			return &PatternError{Offset: at[0], Message: "verbs such as (*UTF), (*NO_JIT) and (*SKIP) are not allowed"}
		}
	}
	return nil
}

func (lib *library) compileSearch(pattern, text string, o Options) (handle, error) {
	if at := wholeRecursion.FindStringIndex(pattern); at != nil {
		return 0, &PatternError{Offset: at[0], Message: "a pattern that contains itself, as by (?R), must begin with ^"}
	}
	code, err := lib.compileText(text, o.bits())
	if wrong := (*PatternError)(nil); errors.As(err, &wrong) {
		// The pattern alone is valid, but its end is open, as in "\Qa" or "(?x)a#b".
		wrong.Offset = min(max(0, wrong.Offset-len(searchStart)), len(pattern))
	}
	return code, err
}

// finish checks the limits of a compiled pattern and compiles its machine code.
func (lib *library) finish(code handle, end int) error {
	if n := property[uint32](lib, code, infoCaptureCount); n > MaxGroups {
		return &PatternError{Offset: end, Message: fmt.Sprintf("the pattern has %d capturing groups, %d are allowed", n, MaxGroups)}
	}
	if n := property[uintptr](lib, code, infoSize); n > maxCompiled {
		return &PatternError{Offset: end, Message: fmt.Sprintf("the compiled pattern has %d bytes, %d are allowed", n, maxCompiled)}
	}
	if lib.jitCompile(code, jitComplete); lib.jit && property[uintptr](lib, code, infoJITSize) == 0 {
		return &PatternError{Offset: end, Message: "the pattern can't be turned into machine code"}
	}
	return nil
}

// Size is the size of the compiled pattern with its machine code, in bytes. It
// takes about as much in each NGINX worker.
func (p *Pattern) Size() int {
	return int(property[uintptr](p.lib, p.code, infoSize) + property[uintptr](p.lib, p.code, infoJITSize))
}

// Groups is how many capturing groups the pattern has.
func (p *Pattern) Groups() int { return p.groups }

// Text is the pattern for Lua that gives the same results: the pattern itself if
// it matches at the start only, otherwise the pattern with searchStart.
func (p *Pattern) Text() string { return p.text }

// Match reports whether the pattern matches somewhere in the subject. An error
// wraps ErrLimit or is PCRE's; NGINX then answers 500.
func (p *Pattern) Match(subject string) (bool, error) {
	groups, err := p.Find(subject)
	return groups != nil, err
}

// Find matches like Match and returns positions: at 0 of the whole match and at n
// of the n-th group, each as the offsets of its start and end in bytes, both -1 for
// a group that took no part. Without a match it returns nil.
func (p *Pattern) Find(subject string) ([][2]int, error) {
	// The pattern's code would be freed earlier, when nothing refers to the pattern.
	defer runtime.KeepAlive(p)
	s, ok := p.lib.scratches.Get().(*scratch)
	if !ok {
		var err error
		if s, err = p.lib.newScratch(); err != nil {
			return nil, err
		}
	}
	defer p.lib.scratches.Put(s)
	n, err := p.lib.run(p.code, subject, s)
	if n == 0 {
		return nil, err
	}
	groups := make([][2]int, p.groups+1)
	for i := range groups {
		groups[i] = [2]int{-1, -1}
		if i < n {
			groups[i] = [2]int{int(s.found[2*i]), int(s.found[2*i+1])}
		}
	}
	// \K in a group that a lookahead calls can start a match behind its end. Lua returns an empty match then.
	groups[0][0] = min(groups[0][0], groups[0][1])
	return groups, nil
}
