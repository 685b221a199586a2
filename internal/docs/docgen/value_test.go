package docgen

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/feature"
)

// anyInt32 are the limits of integers without limits of their own.
var anyInt32 = fmt.Sprintf(" from %d to %d", math.MinInt32, math.MaxInt32)

// takes returns which values a setting takes, as the finding for an invalid value
// says it.
func takes(s feature.AnySetting) string {
	d := s.Spec()
	switch d.Refers {
	case feature.Secret, feature.ConfigMap:
		if _, err := d.Parse("name"); err != nil {
			return fmt.Sprintf("namespace/name of a %s", d.Refers)
		}
		return fmt.Sprintf("the name of a %s, or namespace/name", d.Refers)
	}
	if _, risk := d.Default.(feature.Risk); risk {
		return "Low, Medium, High and Critical; any other text is Low"
	}
	var parts []string
	for _, bad := range []string{"\x00:", "(", strings.Repeat("9", 30)} {
		if text := mustBe(s, bad); text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "; ")
	}
	if _, list := d.Default.([]string); list {
		return "a list, separated by commas"
	}
	return "any text"
}

// mustBe returns what a value must be, according to the setting's error for this
// one. It is empty if the value is valid.
func mustBe(s feature.AnySetting, bad string) string {
	_, err := s.Spec().Parse(bad)
	if err == nil {
		return ""
	}
	if _, after, ok := strings.Cut(err.Error(), "must "); ok {
		// Where it is wrong concerns this value alone.
		after, _, _ = strings.Cut(after, ": line ")
		return strings.NewReplacer("\x00be ", "", "\x00consist of ", "", "\x00", "must ", ": must be ", ": ", anyInt32, "").Replace("\x00" + after)
	}
	return ""
}

// defaultOf returns a setting's default as a text, empty for the zero value, and
// false if no text means it.
func defaultOf(s feature.AnySetting) (text string, ok bool) {
	value := s.Spec().Default
	for _, text := range writings(value) {
		if isDefault(s, text) {
			return text, true
		}
	}
	return "", reflect.ValueOf(value).IsZero()
}

// isDefault reports whether a text means a setting's default. "" also means a
// default that is the zero value.
func isDefault(s feature.AnySetting, text string) bool {
	value := s.Spec().Default
	if text == "" && reflect.ValueOf(value).IsZero() {
		return true
	}
	parsed, err := s.Spec().Parse(text)
	// As texts, an empty list and nil are equal.
	return err == nil && fmt.Sprintf("%+v", parsed) == fmt.Sprintf("%+v", value)
}

// writings returns texts that may mean a value, the best first.
func writings(value any) []string {
	var list []string
	switch v := value.(type) {
	case bool:
		if v {
			return []string{"true", "on"}
		}
		return []string{"false", "off"}
	case time.Duration:
		list = append(list, duration(v), fmt.Sprint(int64(v/time.Second)))
	case int64:
		list = append(list, size(v))
	case []string:
		list = append(list, strings.Join(v, ","), strings.Join(v, " "))
	}
	return append(list, fmt.Sprint(value), "auto", "")
}

// size is a number of bytes with the largest unit that leaves it whole.
func size(n int64) string {
	units := []string{"", "k", "m", "g"}
	for n != 0 && n%1024 == 0 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	return fmt.Sprint(n) + units[0]
}

// duration is a time with the largest unit that leaves it whole.
func duration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		time.Duration
	}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if d != 0 && d%unit.Duration == 0 {
			return fmt.Sprint(int64(d/unit.Duration)) + unit.name
		}
	}
	return fmt.Sprint(int64(d/time.Millisecond)) + "ms"
}
