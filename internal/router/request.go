package router

import (
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
)

// What NGINX answers 400 to.
var (
	errHost   = errors.New("no name that NGINX takes as a Host")
	errTarget = errors.New("no target that NGINX takes")
)

// HostName is the name in a Host header as NGINX has it in $host: lower case,
// without port and final dot. An error means that NGINX answers 400.
func HostName(header string) (string, error) {
	if strings.ContainsFunc(header, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '/' }) ||
		strings.Contains(header, "..") {
		return "", errHost
	}
	name := header
	if end := hostEnd(header); end >= 0 {
		name = header[:end]
	}
	// The dot is cut only if it is the last one, that of a port counted too.
	if strings.HasSuffix(name, ".") && strings.LastIndex(header, ".") == len(name)-1 {
		name = name[:len(name)-1]
	}
	if name == "" {
		return "", errHost
	}
	return lower(name), nil
}

// hostEnd is where what follows the name begins, -1 if nothing does.
func hostEnd(header string) int {
	if strings.HasPrefix(header, "[") {
		if end := strings.Index(header, "]"); end >= 0 {
			return end + 1
		}
		return -1
	}
	return strings.Index(header, ":")
}

// lower leaves bytes beyond ASCII alone, as NGINX does.
func lower(text string) string {
	bytes := []byte(text)
	for i, b := range bytes {
		if b >= 'A' && b <= 'Z' {
			bytes[i] = b + 'a' - 'A'
		}
	}
	return string(bytes)
}

// A RequestTarget is what a request line asks for.
type RequestTarget struct {
	// HostName is that of a whole URL, which counts more than the Host header;
	// empty for a target that is a path.
	HostName string
	// Path is decoded, without dot segments and repeated slashes: $uri.
	Path string
	// Query is what stands behind the question mark, as it is.
	Query string
}

// Target reads a request line's target, a path or a whole URL, as NGINX reads
// it. An error means that NGINX answers 400.
func Target(text string) (RequestTarget, error) {
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return RequestTarget{}, errTarget
	}
	var t RequestTarget
	if !strings.HasPrefix(text, "/") {
		var err error
		if t.HostName, text, err = cutAuthority(text); err != nil {
			return RequestTarget{}, err
		}
	}
	text, _, _ = strings.Cut(text, "#")
	var raw string
	raw, t.Query, _ = strings.Cut(text, "?")
	var err error
	t.Path, err = normalize(raw)
	return t, err
}

// authority is the scheme, the host and the port of a whole URL. NGINX takes
// fewer bytes in this host than in a Host header, no user and no fragment here.
var authority = regexp.MustCompile(
	`^[A-Za-z][0-9A-Za-z+.-]*://((?:[0-9A-Za-z.-]*|\[[0-9A-Za-z:._~!$&'()*+,;=-]*\])(?::[0-9]*)?)(?:[/?]|$)`)

// cutAuthority takes scheme and host from a whole URL. The rest begins with
// the slash of the path, which an URL may leave out.
func cutAuthority(url string) (hostName, rest string, err error) {
	at := authority.FindStringSubmatchIndex(url)
	if at == nil {
		return "", "", errTarget
	}
	if hostName, err = HostName(url[at[2]:at[3]]); err != nil {
		return "", "", errTarget
	}
	if rest = url[at[3]:]; !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	return hostName, rest, nil
}

// normalize decodes a path, resolves its dots and merges its slashes. Encoded
// dots and slashes act as plain ones.
func normalize(raw string) (string, error) {
	decoded, err := decode(raw)
	if err != nil {
		return "", err
	}
	elements := strings.Split(decoded[1:], "/")
	var kept []string
	open := false // the path ends in a slash
	for _, e := range elements {
		open = true
		switch e {
		case "", ".":
		case "..":
			if len(kept) == 0 {
				return "", errTarget
			}
			kept = kept[:len(kept)-1]
		default:
			kept, open = append(kept, e), false
		}
	}
	path := "/" + strings.Join(kept, "/")
	if open && path != "/" {
		path += "/"
	}
	return path, nil
}

// decode resolves percent-encoding. There is none for a NUL.
func decode(raw string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return "", errTarget
			}
			b, err := hex.DecodeString(raw[i+1 : i+3])
			if err != nil || b[0] == 0 {
				return "", errTarget
			}
			c = b[0]
			i += 2
		}
		out.WriteByte(c)
	}
	return out.String(), nil
}
