package feature_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

// A parseCase is a text and the value it gives, nil if it is refused.
type parseCase struct {
	text string
	want any
}

func check[T any](t *testing.T, parse func(string) (T, error), cases []parseCase) {
	t.Helper()
	for _, c := range cases {
		got, err := parse(c.text)
		switch {
		case c.want == nil && err == nil:
			t.Errorf("%q was taken as %v", c.text, got)
		case c.want != nil && (err != nil || fmt.Sprint(got) != fmt.Sprint(c.want)):
			t.Errorf("%q: got %v, %v; want %v", c.text, got, err, c.want)
		case err != nil && (strings.ContainsAny(err.Error(), "\r\n") || !strings.Contains(err.Error(), "must ")):
			t.Errorf("%q: the error does not say in one line what is allowed: %v", c.text, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Run("Bool", func(t *testing.T) {
		check(t, feature.Bool, []parseCase{
			{"true", true}, {"True", true}, {"TRUE", true}, {"t", true}, {"1", true}, {"false", false}, {"0", false}, {"F", false},
			{"yes", nil}, {"on", nil}, {"", nil}, {" true", nil}, {"tRue", nil}, {"2", nil},
		})
	})
	t.Run("Either", func(t *testing.T) {
		check(t, feature.Either("on", "off"), []parseCase{{"on", true}, {"off", false}, {"On", nil}, {"true", nil}, {"", nil}, {"on ", true}})
	})
	t.Run("Int", func(t *testing.T) {
		check(t, feature.Int(-2, 10), []parseCase{
			{"-2", -2}, {"0", 0}, {"10", 10}, {"+3", 3}, {"007", 7}, {"-3", nil}, {"11", nil}, {"1.0", nil}, {"1e1", nil}, {"0x1", nil}, {"1_0", nil},
			{"", nil}, {" 1", nil}, {"99999999999999999999", nil},
		})
	})
	t.Run("Seconds", func(t *testing.T) {
		check(t, quantity.Seconds(1, 60), []parseCase{
			{"1", time.Second}, {"60", time.Minute}, {"0", nil}, {"61", nil}, {"5s", nil}, {"1.5", nil}, {"-1", nil}, {"", nil},
		})
	})
	t.Run("OneOf", func(t *testing.T) {
		check(t, feature.OneOf(301, 308), []parseCase{{"301", 301}, {"308", 308}, {"0308", 308}, {"302", nil}, {"", nil}, {"301 ", nil}})
	})
	t.Run("List", func(t *testing.T) {
		check(t, feature.List, []parseCase{
			{"a", []string{"a"}}, {"a, b,,c ,", []string{"a", "b", "c"}}, {"", []string(nil)}, {" , ", []string(nil)}, {"a b", []string{"a b"}},
		})
	})
}

func FuzzInt(f *testing.F) {
	for _, seed := range []string{"0", "-5", "+5", "31536000", "007", "9223372036854775808"} {
		f.Add(seed)
	}
	const least, most = -5, 31536000
	parse, seconds := feature.Int(least, most), quantity.Seconds(0, most)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parse(text)
		if d, secondsErr := seconds(text); secondsErr == nil && (err != nil || d != time.Duration(n)*time.Second) {
			t.Fatalf("%q is %d, and %v", text, n, d)
		}
		if err != nil {
			return
		}
		if again, err := parse(strconv.Itoa(n)); n < least || n > most || err != nil || again != n {
			t.Fatalf("%q gave %d, and that %d, %v", text, n, again, err)
		}
	})
}

func FuzzList(f *testing.F) {
	for _, seed := range []string{"", "a", "/a, /b", " , ,", "a\n,b\x00", "\u2028a,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := feature.List(text)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := feature.List(strings.Join(list, ","))
		if !slices.Equal(list, again) || slices.Contains(list, "") {
			t.Fatalf("%q gave %q, and that %q", text, list, again)
		}
	})
}
