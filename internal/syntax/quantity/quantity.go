// Package quantity reads times and sizes as NGINX writes them.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Seconds returns a parser of a whole number of seconds, without a unit.
func Seconds(minimum, maximum int) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < minimum || n > maximum {
			return 0, fmt.Errorf("must be an integer from %d to %d (seconds, without a unit)", minimum, maximum)
		}
		return time.Duration(n) * time.Second, nil
	}
}

var durationPattern = regexp.MustCompile(`^([0-9]{1,9})(ms|s|m|h|d)?$`)

// Duration reads a time as NGINX writes it: "60", "240s", "1h".
func Duration(text string) (time.Duration, error) {
	found := durationPattern.FindStringSubmatch(text)
	if found == nil {
		return 0, errors.New("must be a number with ms, s, m, h or d (seconds without a unit)")
	}
	unit := map[string]time.Duration{
		"ms": time.Millisecond, "": time.Second, "s": time.Second,
		"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
	}[found[2]]
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil || n > int64(math.MaxInt64/unit) {
		return 0, errors.New("must be a shorter time")
	}
	return time.Duration(n) * unit, nil
}

var sizePattern = regexp.MustCompile(`^([0-9]+)([bkmg]?)$`)

// Size returns a parser of a number of bytes from minimum to maximum, with b, k, m or g
// in any case. Spaces are removed, as by ingress-nginx.
func Size(minimum, maximum int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		found := sizePattern.FindStringSubmatch(strings.ToLower(strings.ReplaceAll(text, " ", "")))
		if found == nil {
			return 0, errors.New("must be a size such as 512, 8k or 1m (units b, k, m and g)")
		}
		shift := map[string]uint{"": 0, "b": 0, "k": 10, "m": 20, "g": 30}[found[2]]
		n, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil || n > math.MaxInt64>>shift || n<<shift > maximum || n<<shift < minimum {
			return 0, fmt.Errorf("must be from %d to %d bytes", minimum, maximum)
		}
		return n << shift, nil
	}
}
