package pcre

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		offset  int
		message string
	}{
		{"^/(a", 4, "missing closing parenthesis"},
		{"/a(b", 4, "missing closing parenthesis"},
		{"^/[z-a]", 5, "range out of order"},
		{"^a{2,1}", 6, "numbers out of order"},
		{`^\`, 2, `\ at end of pattern`},
		// Their end would be open within searchStart and searchEnd.
		{`foo\Qa`, 6, "missing closing parenthesis"},
		{"(?x)a # b", 9, "missing closing parenthesis"},
		{"a)|(?:b", 1, "unmatched closing parenthesis"},
		{"(*UTF)^a", 0, "verbs such as"},
		{"(*NO_JIT)^a", 0, "verbs such as"},
		{"(*LIMIT_MATCH=1)^a", 0, "verbs such as"},
		{"(*CRLF)(*UCP)^a", 0, "verbs such as"},
		{`^a\\(*SKIP)b`, 4, "verbs such as"},
		{"a(?R)?b", 1, "must begin with ^"},
		{"a(?00)?b", 1, "must begin with ^"},
		{`a\g<0>?b`, 1, "must begin with ^"},
		{`a\g'0'?b`, 1, "must begin with ^"},
		{"^" + strings.Repeat("a", MaxLength), MaxLength, "has 4097 bytes, 4096 are allowed"},
		{"^" + strings.Repeat("()", MaxGroups+1), 201, "has 100 capturing groups, 99 are allowed"},
		{"^(?:[a-z]{9}[a-f]b){500}", 24, "bytes, 16384 are allowed"},
		{"^" + strings.Repeat("(?:", 300) + strings.Repeat(")", 300), 754, "too deeply nested"},
		{"^(?(?C1)(?=a)a|b)", 17, "machine code"},
	} {
		_, err := Compile(c.pattern, Options{Caseless: true})
		var wrong *PatternError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Message, c.message) || wrong.Offset != c.offset {
			t.Errorf("%.40q: %v, want %q at offset %d", c.pattern, err, c.message, c.offset)
		}
	}
}

func TestCompileBounds(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"^" + strings.Repeat("a", MaxLength-1), strings.Repeat("()", MaxGroups), `^\(*Anna`, "^(?:a(?R)?)", "(?(R)a|b)"} {
		if p, err := Compile(pattern, Options{}); err != nil {
			t.Errorf("%.40q: %v", pattern, err)
		} else if _, err := p.Find("a"); err != nil {
			t.Errorf("%.40q: %v", pattern, err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, subject string
		options          Options
		want             [][2]int
	}{
		{"^/a(/.*)?(x)?", "/a/b", Options{}, [][2]int{{0, 4}, {2, 4}, {-1, -1}}},
		{"^/a", "/A", Options{}, nil},
		{"^/a", "/A", Options{Caseless: true}, [][2]int{{0, 2}}},
		{"b(c)", "abcbc", Options{}, [][2]int{{1, 3}, {2, 3}}},
		{`a\Kb`, "xab", Options{}, [][2]int{{2, 3}}},
		{`(?(DEFINE)(?<a>ab\K))(?=(?&a))a`, "ab", Options{}, [][2]int{{1, 1}, {-1, -1}}},
		{"", "", Options{}, [][2]int{{0, 0}}},
		{"^$", "", Options{}, [][2]int{{0, 0}}},
		{"b\x00c", "ab\x00c", Options{}, [][2]int{{1, 4}}},
		{"é", "É", Options{Caseless: true}, nil},
		{"a.c", "x\na\nc", Options{}, nil},
	} {
		p, err := Compile(c.pattern, c.options)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		got, err := p.Find(c.subject)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%q on %q: error %v, (-want +got):\n%s", c.pattern, c.subject, err, diff)
		}
		if matched, err := p.Match(c.subject); err != nil || matched != (c.want != nil) {
			t.Errorf("%q on %q: Match says %t, %v", c.pattern, c.subject, matched, err)
		}
	}
}

// A pattern that is not anchored must not get MatchLimit at every position:
// the first one then takes 40 s.
func TestLimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 8000) + "xb"
	for _, pattern := range []string{"(?=.*[a-z]*x$)a*", "^(a+)+$", "(a+)+$", "^(?:a|aa)+x?$", "^(?:(?!.*[a-z]*x$).)*$"} {
		p, err := Compile(pattern, Options{})
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		if groups, err := p.Find(long); !errors.Is(err, ErrLimit) || groups != nil {
			t.Errorf("%q finds %v with %v, want ErrLimit", pattern, groups, err)
		}
		if matched, err := p.Match(long); !errors.Is(err, ErrLimit) || matched {
			t.Errorf("%q matches: %t with %v, want ErrLimit", pattern, matched, err)
		}
	}
	// PCRE's own limit is a hundred times as high.
	p, err := Compile("^(a+)+$", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]error{12: nil, 20: ErrLimit} {
		if _, err := p.Match(strings.Repeat("a", length) + "b"); !errors.Is(err, want) {
			t.Errorf("%d letters: %v, want %v", length, err, want)
		}
	}
}

func TestStackLimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 8000) + "xb"
	p, err := Compile("^(a|b|x)*$", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if matched, err := p.Match(long); err != nil || !matched {
		t.Errorf("%q: %t, %v", "^(a|b|x)*$", matched, err)
	}
	if _, err := p.Match(strings.Repeat(long, 100)); !errors.Is(err, ErrLimit) {
		t.Errorf("a match without stack gives %v, want ErrLimit", err)
	}
}

// Where the machine forbids machine code, PCRE interprets, and NGINX does too.
func TestWithoutJIT(t *testing.T) {
	t.Parallel()
	lib, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if !lib.jit {
		t.Fatal("the library has no JIT here")
	}
	lib.jit = false
	lib.jitCompile = func(handle, uint32) int32 { return -1 }
	p, err := lib.pattern("^/(a+)+$", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if matched, err := p.Match("/aaa"); err != nil || !matched {
		t.Errorf("matches: %t, %v", matched, err)
	}
	if _, err := p.Match("/" + strings.Repeat("a", 100) + "b"); !errors.Is(err, ErrLimit) {
		t.Errorf("match without an end: %v, want ErrLimit", err)
	}
}

// Many goroutines share, create and drop patterns. A dropped pattern is freed
// once, and not during a match.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	lib, err := open()
	if err != nil {
		t.Fatal(err)
	}
	var compiled, freed atomic.Int64
	compile, codeFree := lib.compile, lib.codeFree
	lib.compile = func(pattern *byte, length uintptr, options uint32, code *int32, offset *uintptr, context handle) handle {
		compiled.Add(1)
		return compile(pattern, length, options, code, offset, context)
	}
	lib.codeFree = func(code handle) { freed.Add(1); codeFree(code) }
	shared, err := lib.pattern(`/(\d+)/(x+)$`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 200 {
				tail := strings.Repeat("x", i+1)
				if found, err := shared.Find("/a/12/" + tail); err != nil || len(found) != 3 || found[2] != [2]int{6, 7 + i} {
					t.Errorf("finds %v, %v", found, err)
				}
				own, err := lib.pattern("^(?:x{2})*$", Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if matched, err := own.Match(tail); err != nil || matched != (i%2 == 1) {
					t.Errorf("%d letters match: %t, %v", i+1, matched, err)
				}
			}
		})
	}
	group.Wait()
	for deadline := time.Now().Add(20 * time.Second); freed.Load() < compiled.Load()-1 && time.Now().Before(deadline); {
		runtime.GC()
		runtime.Gosched()
	}
	if found, err := shared.Match("/1/x"); err != nil || !found || freed.Load() != compiled.Load()-1 {
		t.Errorf("at the end: %t, %v; %d compiled and %d freed, want all but one", found, err, compiled.Load(), freed.Load())
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if version, err := Version(); err != nil || !strings.HasPrefix(version, "10.") {
		t.Errorf("version %q, %v", version, err)
	}
}

func BenchmarkMatch(b *testing.B) {
	p, err := Compile("^/api/v([0-9]+)/users", Options{Caseless: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if matched, err := p.Match("/api/v1/users/1234567"); err != nil || !matched {
			b.Fatal(matched, err)
		}
	}
}

// TestLoad loads the text of a pattern of MaxLength, which is longer than that.
func TestLoad(t *testing.T) {
	p, err := Compile(strings.Repeat("a", MaxLength-2)+"|b", Options{Caseless: true})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(p.Text(), Options{Caseless: true})
	if err != nil {
		t.Fatal(err)
	}
	if matches, err := loaded.Match("xB"); !matches || err != nil {
		t.Errorf("%t, %v; want a match", matches, err)
	}
	if wrong := (*PatternError)(nil); !errors.As(func() error { _, err := Load("(", Options{}); return err }(), &wrong) {
		t.Error("an invalid pattern is loaded")
	}
}
