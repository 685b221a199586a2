package routing

import (
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/syntax/pcre"
)

// TestLiteralsAsInLua holds the two lists of what is plain text to each other.
func TestLiteralsAsInLua(t *testing.T) {
	source, err := os.ReadFile("../../../lua/headgate/path_patterns.lua")
	if err != nil {
		t.Fatal(err)
	}
	class := `"^%^([%w` + strings.NewReplacer("%", "%%", `"`, `\"`).Replace(literalBytes) + `]*)$"`
	if !strings.Contains(string(source), class) {
		t.Errorf("path_patterns.lua does not have %s", class)
	}
}

// TestLiteralsMeanThemselves matches with each byte that counts as plain text.
func TestLiteralsMeanThemselves(t *testing.T) {
	for i := range 256 {
		text := "/a" + string([]byte{byte(i)}) + "b"
		if !isLiteral(text) {
			continue
		}
		pattern, err := pcre.Compile("^"+text+"$", pcre.Options{Caseless: true})
		if err != nil {
			t.Fatal(err)
		}
		for j := range 256 {
			asked := "/a" + string([]byte{byte(j)}) + "b"
			if matches, err := pattern.Match(asked); err != nil || matches != strings.EqualFold(asked, text) {
				t.Errorf("%q on %q: %v, %v", text, asked, matches, err)
			}
		}
	}
	for _, text := range []string{"/a b", "/\x00", "/é", "/a.b", "/[a]", "/a+", `/\d`, "/a|b", "/(a)", "/$", "/a{2}"} {
		if isLiteral(text) {
			t.Errorf("%q counts as plain text", text)
		}
	}
}
