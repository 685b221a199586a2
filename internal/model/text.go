package model

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
