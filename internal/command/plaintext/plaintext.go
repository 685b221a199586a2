// Package plaintext makes text that tenants wrote safe to print.
package plaintext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Of replaces what a terminal would take for commands by \u and four hexadecimal digits. Line
// breaks and tabs stay. JSON stays the same JSON.
func Of(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			b.WriteRune(r)
			continue
		}
		for _, half := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, half)
		}
	}
	return b.String()
}
