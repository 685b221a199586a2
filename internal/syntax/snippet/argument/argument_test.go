package argument_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/syntax/snippet/argument"
)

// TestArguments: what each check takes, and what it says about the rest.
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check        func([]string) ([]string, error)
		takes, wrong []string // with "→" what is used
		says         string
	}{
		"Time":        {argument.Time, []string{"90 → 90s", "1m30s → 90s", "1500ms → 1500ms", "1h 30 → 3630s"}, []string{"", "x", "1y", "-1"}, "must be a number with ms, s, m, h or d"},
		"Size":        {argument.Size, []string{"0", "8k", "1M"}, []string{"", "8g", "-1"}, "must be a number of bytes, or with k or m"},
		"Offset":      {argument.Offset, []string{"8k", "1g", "1G"}, []string{"", "1gg", "x"}, "must be a number of bytes, or with k, m or g"},
		"Buffers":     {argument.Buffers, []string{"8 4k"}, []string{"0 4k", "8 4x"}, "must be a number"},
		"Flag":        {argument.Flag, []string{"on", "OFF → off"}, []string{"yes", ""}, `must be "on" or "off"`},
		"Any":         {argument.Any, []string{"x y"}, nil, ""},
		"Number":      {argument.Number(1, 9), []string{"1", "9"}, []string{"0", "10", "x"}, "must be a number from 1 to 9"},
		"OneOf":       {argument.OneOf("a", "b"), []string{"a", "b a"}, []string{"c", "a c"}, "must be one of a, b"},
		"LimitReq":    {argument.LimitReq, []string{"zone=a burst=5 nodelay", "zone=a delay=3"}, []string{"zone=a burst=0", "zone=a fast"}, "must be zone=NAME, burst=NUMBER, delay=NUMBER or nodelay"},
		"no zone":     {argument.LimitReq, nil, []string{"burst=5"}, "the zone is missing"},
		"LimitConn":   {argument.LimitConn, []string{"a 5"}, []string{"a 0", "a x"}, "must be a number from 1 to 65535"},
		"Expressions": {argument.Expressions, []string{"MSIE [1-6]\\."}, []string{"("}, "invalid expression"},
		"MediaTypes":  {argument.MediaTypes, []string{"text/plain *"}, []string{"text", "text/"}, "invalid media type"},
		"Trusted":     {argument.Trusted, []string{"10.0.0.0/8", "::1", "unix:"}, []string{"example.com", ""}, "must be an IP address, a network such as 10.0.0.0/8"},
		"Redirect":    {argument.Redirect, []string{"off", "default", "a b"}, []string{"a", "~( b"}, "invalid"},
		"Cookie":      {argument.Cookie, []string{"off", "/ /a"}, []string{"default"}, `must be "off", or two values`},
		"CookieFlags": {argument.CookieFlags, []string{"off", "a secure", "~^a samesite=lax"}, []string{"on", "a b", "~( secure"}, "invalid"},
	} {
		for _, text := range c.takes {
			text, want, other := strings.Cut(text, " → ")
			if !other {
				want = text
			}
			used, err := c.check(words(name, text))
			if err != nil || strings.Join(used, " ") != want {
				t.Errorf("%s: %q is taken as %q, %v", name, text, used, err)
			}
		}
		for _, text := range c.wrong {
			if _, err := c.check(words(name, text)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %q: %v, want %q", name, text, err, c.says)
			}
		}
	}
}

// words are the arguments of a text. Times have spaces.
func words(check, text string) []string {
	if check == "Time" || check == "Expressions" {
		return []string{text}
	}
	return slices.Clone(strings.Split(text, " "))
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"90": 90, "1h": 3600, "1d 2h": 93600, "1500ms": -1, "x": -1} {
		if n, ok := argument.Seconds(text); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
}
