// Package pcre judges patterns and matches text by them exactly as NGINX's Lua
// module does, because it calls the same library with the same options and
// limits: what is accepted, found or cut off here is so there.
//
// The other side is ngx.re.match(subject, pattern.Text(), "joi"), or "jo" for a
// pattern that heeds case, in an NGINX with lua_regex_match_limit MatchLimit
// and ngx.re.opt("jit_stack_size", JITStack).
//
// It knows nothing of hosts, paths and headers. A pattern comes from a tenant
// and its subject from a client; neither may cost much.
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
	// Useful patterns take a few thousand on the longest path; this many take
	// 10 ms as a rule, and 0.2 s in the worst case found.
	MatchLimit = 100_000
	// JITStack is how large a match's stack may become, in bytes, for ngx.re.opt's
	// jit_stack_size. With PCRE's own 32 KiB "(a|b)*" fails on 4,000 bytes.
	JITStack = 256 << 10
	// MaxLength is that of a pattern's text, in bytes.
	MaxLength = 4096
	// MaxGroups is how many capturing groups a pattern may have.
	MaxGroups = 99
	// maxCompiled is the size of a compiled pattern, in bytes. Machine code is
	// some ten times as large.
	maxCompiled = 16 << 10
)

// ErrLimit says that a match was cut off, after too many steps or for want of
// stack. It is no answer: neither "matches" nor "does not match".
var ErrLimit = errors.New("the pattern takes too many steps on this text")

// PatternError says why a pattern can't be used.
type PatternError struct {
	// Offset is where in the pattern PCRE or Compile stopped, in bytes.
	Offset int
	// Message is PCRE's own, or says what Compile refuses.
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

// verb is what starts with "(*" and a capital: a setting at the start, as
// (*UTF), or a control of backtracking, as (*SKIP).
var verb = regexp.MustCompile(`\(\*[A-Z]`)

// wholeRecursion is a pattern's call of itself.
var wholeRecursion = regexp.MustCompile(`\(\?(?:R|0+)\)|\\g[<']0+[>']`)

// search makes a pattern that may match anywhere one that is tried at the
// start only, with the same answer.
const searchStart, searchEnd = `\A(?s:.*?)\K(?:`, `)`

// Compile reads a pattern. Its error is a *PatternError when the pattern is at
// fault, and another one when the library is missing or out of memory.
//
// Refused, beside what PCRE refuses, is what would let one pattern hurt others:
//   - a text longer than MaxLength, with more groups than MaxGroups, or that
//     becomes too large when it is compiled;
//   - (*VERBS): (*NO_JIT) takes a match to the interpreter, whose memory nothing
//     limits in NGINX; after (*UTF) a request with bytes that are no UTF-8 is an
//     error; (*LIMIT_MATCH=) moves the limits;
//   - what JIT can't compile, where JIT works, for the same reason.
//
// PCRE counts the steps anew at every position where a match may start, so that
// MatchLimit does not hold for a pattern that is not anchored. Such a pattern is
// compiled with a start that looks for the position and so counts all steps
// together; see Text. One that calls itself as a whole is refused, since the
// call would include that start.
func Compile(pattern string, o Options) (*Pattern, error) {
	lib, err := opened()
	if err != nil {
		return nil, err
	}
	return lib.pattern(pattern, o)
}

func (lib *library) pattern(pattern string, o Options) (*Pattern, error) {
	if err := refuse(pattern); err != nil {
		return nil, err
	}
	code, err := lib.compileText(pattern, o.bits())
	if err != nil {
		return nil, err
	}
	text := pattern
	if lib.number(code, infoAllOptions)&optionAnchored == 0 {
		lib.codeFree(code)
		text = searchStart + pattern + searchEnd
		if code, err = lib.compileSearch(pattern, text, o); err != nil {
			return nil, err
		}
	}
	if err := lib.accept(code, len(pattern)); err != nil {
		lib.codeFree(code)
		return nil, err
	}
	return lib.newPattern(code, text), nil
}

// Load compiles what Text gave. It does not judge it once more, and could not:
// the start that searches makes a text longer than Compile takes it.
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
	p := &Pattern{lib: lib, code: code, text: text, groups: int(lib.number(code, infoCaptureCount))}
	runtime.AddCleanup(p, lib.codeFree, code)
	return p
}

func (o Options) bits() uint32 {
	if o.Caseless {
		return optionCaseless
	}
	return 0
}

// refuse judges the text that PCRE has not seen yet.
func refuse(pattern string) error {
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

// compileSearch compiles the text that searchStart and searchEnd made.
func (lib *library) compileSearch(pattern, text string, o Options) (handle, error) {
	if at := wholeRecursion.FindStringIndex(pattern); at != nil {
		return 0, &PatternError{Offset: at[0], Message: "a pattern that calls itself as a whole must begin with ^"}
	}
	code, err := lib.compileText(text, o.bits())
	if wrong := (*PatternError)(nil); errors.As(err, &wrong) {
		// The pattern alone was right: its end is open, as in "\Qa" or "(?x)a#b".
		wrong.Offset = min(max(0, wrong.Offset-len(searchStart)), len(pattern))
	}
	return code, err
}

// accept holds a compiled pattern to its bounds and makes machine code of it.
func (lib *library) accept(code handle, end int) error {
	if n := lib.number(code, infoCaptureCount); n > MaxGroups {
		return &PatternError{Offset: end, Message: fmt.Sprintf("the pattern has %d capturing groups, %d are allowed", n, MaxGroups)}
	}
	if n := lib.size(code, infoSize); n > maxCompiled {
		return &PatternError{Offset: end, Message: fmt.Sprintf("the compiled pattern has %d bytes, %d are allowed", n, maxCompiled)}
	}
	if lib.jitCompile(code, jitComplete); lib.jit && lib.size(code, infoJITSize) == 0 {
		return &PatternError{Offset: end, Message: "the pattern can't be turned into machine code"}
	}
	return nil
}

// Size is how many bytes the compiled pattern takes, with its machine code: in
// each NGINX worker too, about.
func (p *Pattern) Size() int {
	return int(p.lib.size(p.code, infoSize) + p.lib.size(p.code, infoJITSize))
}

// Text is what Lua must be given for the same answers: the pattern itself if it
// matches at the start only, else the pattern with a start that searches.
func (p *Pattern) Text() string { return p.text }

// Groups is the number of capturing groups.
func (p *Pattern) Groups() int { return p.groups }

// Match says whether the pattern matches somewhere in the subject. An error
// wraps ErrLimit or is PCRE's; NGINX then answers 500.
func (p *Pattern) Match(subject string) (bool, error) {
	s, err := p.lib.scratches.take()
	if err != nil {
		return false, err
	}
	defer p.lib.scratches.put(s)
	n, err := p.run(subject, s)
	return n > 0, err
}

// Find is as Match and says where: at 0 the whole match and at n the n-th
// group, each with its start and the end behind it as offsets in bytes, both -1
// for a group that took no part. Without a match it is nil.
func (p *Pattern) Find(subject string) ([][2]int, error) {
	s, err := p.lib.scratches.take()
	if err != nil {
		return nil, err
	}
	defer p.lib.scratches.put(s)
	n, err := p.run(subject, s)
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
	// \K in a group that a lookahead calls can start a match behind its end. For Lua that is an empty one.
	groups[0][0] = min(groups[0][0], groups[0][1])
	return groups, nil
}

func (p *Pattern) run(subject string, s *scratch) (int, error) {
	// Not before: the pattern's code is freed when nothing refers to the pattern.
	defer runtime.KeepAlive(p)
	return p.lib.run(p.code, subject, s)
}
