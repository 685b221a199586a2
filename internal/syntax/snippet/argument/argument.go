// Package argument says which arguments a directive may have. Each check returns the arguments to use, or
// what they must be.
package argument

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/syntax/pcre"
)

// timePattern is NGINX's: units from large to small, and a number without one at the end.
var timePattern = regexp.MustCompile(`^(?:(\d{1,9})y *)?(?:(\d{1,9})M *)?(?:(\d{1,9})w *)?(?:(\d{1,9})d *)?(?:(\d{1,9})h *)?(?:(\d{1,9})m *)?(?:(\d{1,9})s *)?(?:(\d{1,9})ms *)?(\d{1,9})?$`)

// readTime reads a time in milliseconds.
func readTime(text string) (int, bool) {
	found := timePattern.FindStringSubmatch(text)
	if found == nil || text == "" {
		return 0, false
	}
	const second, day = 1000, 24 * 60 * 60 * 1000
	total := 0
	for i, unit := range []int{365 * day, 30 * day, 7 * day, day, 60 * 60 * second, 60 * second, second, 1, second} {
		n, err := strconv.Atoi("0" + found[i+1])
		if err != nil {
			return 0, false
		}
		total += n * unit
	}
	return total, true
}

// Seconds reads a time that is a whole number of seconds: without milliseconds.
func Seconds(text string) (int, bool) {
	n, ok := readTime(text)
	return n / 1000, ok && !strings.Contains(text, "ms")
}

var sizePattern = regexp.MustCompile(`^\d{1,9}[kKmM]?$`)

// Time takes times with units.
func Time(arguments []string) ([]string, error) {
	list := make([]string, len(arguments))
	for i, text := range arguments {
		n, ok := readTime(text)
		// NGINX reads years and months only where it reads no milliseconds.
		if !ok || strings.ContainsAny(text, "yM") {
			return nil, fmt.Errorf("invalid time %q: must be a number with ms, s, m, h or d", text)
		}
		if list[i] = strconv.Itoa(n) + "ms"; n%1000 == 0 {
			list[i] = strconv.Itoa(n/1000) + "s"
		}
	}
	return list, nil
}

// Size takes a size in bytes, kilobytes or megabytes.
func Size(arguments []string) ([]string, error) {
	if text := arguments[0]; !sizePattern.MatchString(text) {
		return nil, fmt.Errorf("invalid size %q: must be a number of bytes, or with k or m", text)
	}
	return arguments, nil
}

// Offset is a size that may be in gigabytes.
func Offset(arguments []string) ([]string, error) {
	if _, err := Size([]string{strings.TrimRight(arguments[0], "gG")}); err != nil || strings.Count(strings.ToLower(arguments[0]), "g") > 1 {
		return nil, fmt.Errorf("invalid size %q: must be a number of bytes, or with k, m or g", arguments[0])
	}
	return arguments, nil
}

// Buffers is a number and a size.
func Buffers(arguments []string) ([]string, error) {
	if _, err := Number(1, 1<<16)(arguments[:1]); err != nil {
		return nil, err
	}
	_, err := Size(arguments[1:])
	return arguments, err
}

// Flag takes "on" or "off", in any case.
func Flag(arguments []string) ([]string, error) {
	value := strings.ToLower(arguments[0])
	if value != "on" && value != "off" {
		return nil, fmt.Errorf(`invalid value %q: must be "on" or "off"`, arguments[0])
	}
	return []string{value}, nil
}

// Any takes everything.
func Any(arguments []string) ([]string, error) { return arguments, nil }

// Number takes a number from minimum to maximum first.
func Number(minimum, maximum int) func([]string) ([]string, error) {
	return func(arguments []string) ([]string, error) {
		if n, err := strconv.ParseUint(arguments[0], 10, 31); err != nil || int(n) < minimum || int(n) > maximum {
			return nil, fmt.Errorf("invalid value %q: must be a number from %d to %d", arguments[0], minimum, maximum)
		}
		return arguments, nil
	}
}

// OneOf allows each argument to be one of some words.
func OneOf(words ...string) func([]string) ([]string, error) {
	return func(arguments []string) ([]string, error) {
		for _, text := range arguments {
			if !slices.Contains(words, text) {
				return nil, fmt.Errorf("invalid value %q: must be one of %s", text, strings.Join(words, ", "))
			}
		}
		return arguments, nil
	}
}

// LimitReq reads "zone=NAME [burst=N] [nodelay | delay=N]".
func LimitReq(arguments []string) ([]string, error) {
	zone := false
	for _, text := range arguments {
		name, value, _ := strings.Cut(text, "=")
		n, err := strconv.ParseUint(value, 10, 31)
		switch {
		case name == "zone" && value != "":
			zone = true
		case (name == "burst" || name == "delay") && err == nil && n > 0, text == "nodelay":
		default:
			return nil, fmt.Errorf("invalid parameter %q: must be zone=NAME, burst=NUMBER, delay=NUMBER or nodelay", text)
		}
	}
	if !zone {
		return nil, errors.New("the zone is missing")
	}
	return arguments, nil
}

// LimitConn takes the name of a zone and a number.
func LimitConn(arguments []string) ([]string, error) {
	_, err := Number(1, 65535)(arguments[1:])
	return arguments, err
}

// Expressions reads the expressions of gzip_disable.
func Expressions(arguments []string) ([]string, error) {
	for _, text := range arguments {
		if _, err := pcre.Compile(text, pcre.Options{Caseless: true}); err != nil {
			return nil, fmt.Errorf("invalid expression %q: %w", text, err)
		}
	}
	return arguments, nil
}

// MediaTypes reads a list of media types, or an asterisk.
func MediaTypes(arguments []string) ([]string, error) {
	for _, text := range arguments {
		kind, of, ok := strings.Cut(text, "/")
		if text != "*" && (!ok || !IsToken(kind) || !IsToken(of)) {
			return nil, fmt.Errorf("invalid media type %q", text)
		}
	}
	return arguments, nil
}

// Trusted reads an address, a network or "unix:". Names are not looked up.
func Trusted(arguments []string) ([]string, error) {
	text := arguments[0]
	_, err := netip.ParseAddr(text)
	if _, wrong := netip.ParsePrefix(text); wrong != nil && err != nil && text != "unix:" {
		return nil, fmt.Errorf(`invalid address %q: must be an IP address, a network such as 10.0.0.0/8, or "unix:"`, text)
	}
	return arguments, nil
}

// Redirect reads "default", "off", or what is replaced and what with. Expressions are
// not taken.
func Redirect(arguments []string) ([]string, error) {
	switch {
	case len(arguments) == 1 && arguments[0] != "off" && arguments[0] != "default":
		return nil, fmt.Errorf(`invalid value %q: must be "off" or "default", or two values`, arguments[0])
	case len(arguments) == 2 && strings.HasPrefix(arguments[0], "~"):
		_, err := Expressions([]string{strings.TrimLeft(arguments[0], "~* ")})
		return arguments, err
	}
	return arguments, nil
}

// Cookie is the same for proxy_cookie_path and proxy_cookie_domain.
func Cookie(arguments []string) ([]string, error) {
	if len(arguments) == 1 && arguments[0] != "off" {
		return nil, fmt.Errorf(`invalid value %q: must be "off", or two values`, arguments[0])
	}
	return Redirect(arguments)
}

// CookieFlags reads "off", or a cookie and flags.
func CookieFlags(arguments []string) ([]string, error) {
	if len(arguments) == 1 {
		return OneOf("off")(arguments)
	}
	if strings.HasPrefix(arguments[0], "~") {
		if _, err := Expressions([]string{arguments[0][1:]}); err != nil {
			return nil, err
		}
	}
	_, err := OneOf("secure", "nosecure", "httponly", "nohttponly", "samesite=strict", "samesite=lax", "samesite=none", "nosamesite")(arguments[1:])
	return arguments, err
}

func IsToken(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return text != ""
}
