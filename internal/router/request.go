package router

import (
	"encoding/hex"
	"errors"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// Requests that NGINX answers with 400.
var (
	errHost   = errors.New("NGINX rejects the Host")
	errTarget = errors.New("NGINX rejects the request target")
)

// HostName returns the name of a Host header as in NGINX's $host: in lower case,
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
	// The dot is cut only if it is the last one, including those of the port.
	if strings.HasSuffix(name, ".") && strings.LastIndex(header, ".") == len(name)-1 {
		name = name[:len(name)-1]
	}
	if name == "" {
		return "", errHost
	}
	return nginxsyntax.LowerASCII(name), nil
}

// hostEnd is the index of the end of the name, or -1 if nothing follows it.
func hostEnd(header string) int {
	if strings.HasPrefix(header, "[") {
		if end := strings.Index(header, "]"); end >= 0 {
			return end + 1
		}
		return -1
	}
	return strings.Index(header, ":")
}

// A RequestTarget is the target of a request line.
type RequestTarget struct {
	// HostName is that of an absolute URL, which takes precedence over the Host
	// header. It is empty if the target is a path.
	HostName string
	// Path is decoded, without dot segments and repeated slashes, as in $uri.
	Path string
	// Query is the text after the question mark.
	Query string
}

// Target parses the target of a request line, a path or an absolute URL, as NGINX
// does. An error means that NGINX answers 400.
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

// authority is the scheme, the host and the port of an absolute URL. NGINX accepts
// fewer bytes in this host than in a Host header, no user and no fragment.
var authority = regexp.MustCompile(
	`^[A-Za-z][0-9A-Za-z+.-]*://((?:[0-9A-Za-z.-]*|\[[0-9A-Za-z:._~!$&'()*+,;=-]*\])(?::[0-9]*)?)(?:[/?]|$)`)

// cutAuthority removes scheme and host from an absolute URL. The rest begins with
// the slash of the path, which the URL may omit.
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

// normalize decodes a path, resolves its dot segments and merges its slashes.
// Encoded dots and slashes count as well.
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

// decode resolves percent-encoding. An encoded NUL is an error.
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
