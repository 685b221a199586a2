package address

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// Scheme cuts "http://" or "https://" off a URL. secure is set for the latter.
func Scheme(text string) (rest string, secure bool, err error) {
	if rest, secure = strings.CutPrefix(text, "https://"); secure {
		return rest, true, nil
	}
	rest, ok := strings.CutPrefix(text, "http://")
	if !ok {
		return "", false, errors.New("must begin with http:// or https://")
	}
	return rest, false, nil
}

// PathOf is the path of a URL's path and query, unescaped. varies is set where it has a variable;
// then, and where it can't be unescaped, the path is empty.
func PathOf(uri string) (path string, varies bool) {
	path, _, _ = strings.Cut(uri, "?")
	if strings.Contains(path, "$") {
		return "", true
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return "", false
	}
	return plain, false
}

var hostForm = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$`)

// Authority parses "HOST[:PORT]", the part of a URL behind the scheme. A host with a
// variable stays in Call.Host as it is written, in lower case: the caller must take or
// reject it.
func Authority(text string, secure bool) (model.Call, error) {
	call := model.Call{Secure: secure, Port: 80}
	if secure {
		call.Port = 443
	}
	if strings.Contains(text, "@") {
		return model.Call{}, errors.New("must not have a user name")
	}
	host := strings.ToLower(text)
	if at := strings.LastIndexByte(text, ':'); at > strings.LastIndexByte(text, ']') {
		port, err := strconv.ParseUint(text[at+1:], 10, 16)
		if err != nil || port == 0 {
			return model.Call{}, errors.New("the port must be a number from 1 to 65535")
		}
		call.Port, host = uint16(port), host[:at]
	}
	if strings.Contains(host, "$") {
		call.Host = host
		return call, nil
	}
	if address, ok := model.Address(host); ok {
		call.Host = address.String()
		if address.Is6() {
			call.Host = "[" + call.Host + "]"
		}
		return call, nil
	}
	if len(host) > 253 || !hostForm.MatchString(host) {
		return model.Call{}, errors.New("there must be a host name or address after //")
	}
	call.Host = host
	return call, nil
}
