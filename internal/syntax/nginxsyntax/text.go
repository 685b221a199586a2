package nginxsyntax

import "strings"

// LowerASCII is a text in lower case as NGINX has it: bytes beyond ASCII stay.
func LowerASCII(text string) string {
	bytes := []byte(text)
	for i, b := range bytes {
		if b >= 'A' && b <= 'Z' {
			bytes[i] = b + 'a' - 'A'
		}
	}
	return string(bytes)
}

// CutVariable cuts the name of a variable, without its dollar, from the text.
func CutVariable(text string) (name, rest string) {
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		if name, rest, ok = strings.Cut(inner, "}"); !ok {
			return "", ""
		}
		return name, rest
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:]
}
