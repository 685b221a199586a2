package pcre_test

import "strings"

// alike is how similar the two libraries must be for a question.
type alike int

const (
	anyPCRE alike = iota
	// both: PCRE 1 has another result, or does not support the pattern.
	both
	// same: releases of PCRE2 have different results.
	same
)

// sample is a question for both sides, without regard to case.
type sample struct {
	pattern, subject string
	needs            alike
}

func cases() []sample {
	long := strings.Repeat("a", 8000) + "xb"
	all := []sample{
		// Common patterns.
		{"^/api", "/API/v1", anyPCRE},
		{"^/api", "/x/api", anyPCRE},
		{"^/api(/|$)(.*)", "/api/v1/users", anyPCRE},
		{"^/api(/|$)(.*)", "/api", anyPCRE},
		{"^/api(/|$)(.*)", "/apis", anyPCRE},
		{"^/(.+)/(.+)/x$", "/a/b/c/x", anyPCRE},
		{`^/v\d+/[^/]+/?$`, "/v12/ab/", anyPCRE},
		{`\.(?:js|css|png)$`, "/a/b.js.CSS", anyPCRE},
		{"^/a|/b$", "/x/B", anyPCRE},
		{"^(?!/admin)/.*", "/admin/x", anyPCRE},
		{"^(?!/admin)/.*", "/user/x", anyPCRE},
		{"", "abc", anyPCRE},
		{"", "", anyPCRE},
		{"^$", "", anyPCRE},
		{"^.*$", "a\n", anyPCRE},
		{"$", "a\n", anyPCRE},
		{"(a)|(b)|(c)", "xb", anyPCRE},
		{"(a)|b", "b", anyPCRE},
		{"(a)?(b)?(c)?d", "bd", anyPCRE},

		// Looking around, references, atoms.
		{"(?<=a|bc)d", "bcd", anyPCRE},
		{"(?<!a)b", "abb", anyPCRE},
		{"(?<=a{1,2})b", "aab", same},
		{`(?<x>.)\k<x>`, "abba", anyPCRE},
		{`(?P<x>.)(?P=x)`, "xyY", anyPCRE},
		{`(?<y>a)(?<z>b)?`, "a", anyPCRE},
		{"(?J)(?<n>a)|(?<n>b)", "b", anyPCRE},
		{"(?<n>a)|(?<n>b)", "b", anyPCRE},
		{"(?|(a)|(b))(c)", "bc", anyPCRE},
		{`a\Kb`, "xab", anyPCRE},
		{`(?=a\Kb)ab`, "ab", both},
		{`(?>a+)ab`, "aaab", anyPCRE},
		{"a++b", "aaab", anyPCRE},
		{`^(\((?>[^()]+|(?1))*\))`, "((a)b)c", anyPCRE},
		{"^(?:a(?R)?b)", "aabb", both},
		{"(?(DEFINE)(?<d>[0-9]+))(?&d)-(?&d)", "12-34", anyPCRE},
		{"(a)?(?(1)b|c)", "ab", anyPCRE},
		{`^(.*)\1$`, "abcABC", anyPCRE},
		{`\G/a`, "/a", anyPCRE},
		{`(a)\g{-1}`, "aA", anyPCRE},
		{`\1(a)`, "aa", anyPCRE},
		{`\8`, "8", both},

		// Bytes.
		{"é", "É", anyPCRE},
		{"^/é", "/\xc3\xa9", anyPCRE},
		{"^/[\x80-\xff]+$", "/\xc3\xa9\xff", anyPCRE},
		{`^/.$`, "/\xc3\xa9", anyPCRE},
		{`^/\w+$`, "/\xe9", anyPCRE},
		{`\xe9`, "\xc9", anyPCRE},
		{`\x{e9}`, "\xe9", anyPCRE},
		{`\x{100}`, "a", anyPCRE},
		{`\p{Lu}`, "\xe9A", same},
		{`\X`, "a\xcc\x81", anyPCRE},
		{`\C`, "\xff", anyPCRE},
		{"a\x00b", "xa\x00b", both},
		{`a\0b`, "xa\x00b", anyPCRE},
		{"[^b]b", "\x00b", anyPCRE},
		{`\N`, "\n\r", anyPCRE},
		{`a\R`, "a\r\n", anyPCRE},
		{`\h\v`, " \n", anyPCRE},
		{"a.b", "a\nb", anyPCRE},
		{"(?s)a.b", "a\nb", anyPCRE},
		{"(?m)^b$", "a\nb\nc", anyPCRE},
		{"[[:alpha:]]+", "12ab", anyPCRE},
		{"[[:foo:]]", "a", anyPCRE},
		{`\e\a\cA`, "\x1b\x07\x01", anyPCRE},
		{`\Qa.b\E+`, "A.bB", anyPCRE},

		// Switches and oddities.
		{"(?-i)a", "A", anyPCRE},
		{"(?i)a(?-i:b)", "Ab", anyPCRE},
		{"(?x) a # c\n b", "ab", anyPCRE},
		{"(?^)A", "a", both},
		{"(?C1)a", "a", anyPCRE},
		{"(?C)a(?C255)b", "ab", anyPCRE},
		{"(?C256)a", "a", anyPCRE},
		{"(?#(*UTF))a", "a", anyPCRE},
		{"(*pla:a)ab", "ab", both},
		{"(*atomic:a+)b", "aab", both},
		{"a{,2}b", "aab", same},
		{"a{2", "a{2", anyPCRE},
		{"]", "]", anyPCRE},
		{"[]a]+", "a]", anyPCRE},
		{"[a-\\d]+", "-", both},
		{`\i`, "i", both},
		{`\N{U+41}`, "A", anyPCRE},
		{`\Ub`, "ub", anyPCRE},
		{`(`, "", anyPCRE},
		{`a)`, "", anyPCRE},
		{`*`, "", anyPCRE},
		{`a**`, "", anyPCRE},
		{`[b-a]`, "", anyPCRE},
		{`(?<1a>b)`, "", anyPCRE},
		{`(?<=a*)b`, "", anyPCRE},
		{`(?1)`, "", anyPCRE},
		{`\g{2}(a)`, "", anyPCRE},
		{`(?P>no)`, "", anyPCRE},
		{`a\`, "", anyPCRE},

		// Limits.
		{"^(a+)+$", long, anyPCRE},
		{"(a+)+$", long, anyPCRE},
		{"(?=.*[a-z]*x$)a*", long, anyPCRE},
		{"^(?:(?!.*[a-z]*x$).)*$", long, anyPCRE},
		{"^(a|b|x)*$", long, anyPCRE},
		{"^(a|b|x)*$", strings.Repeat(long, 100), anyPCRE},
		{`^/(.*)/(.*)\.php$`, strings.Repeat("/ab", 100) + ".phx", anyPCRE},
	}
	// Around the limit, since both must count steps in the same way.
	for n := range 24 {
		all = append(all, sample{"^(a+)+$", strings.Repeat("a", n) + "b", both}, sample{"(a|aa)+$", strings.Repeat("a", n) + "b", both})
	}
	return all
}
