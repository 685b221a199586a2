package quantity_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

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
	t.Run("Duration", func(t *testing.T) {
		check(t, quantity.Duration, []parseCase{
			{"0", time.Duration(0)}, {"60", time.Minute}, {"240s", 4 * time.Minute}, {"10ms", 10 * time.Millisecond}, {"2m", 2 * time.Minute},
			{"1h", time.Hour}, {"1d", 24 * time.Hour}, {"106751d", 106751 * 24 * time.Hour}, {"106752d", nil}, {"999999999h", nil},
			{"1y", nil}, {"1M", nil}, {"1H", nil}, {"1 s", nil}, {"-1s", nil}, {"1.5s", nil}, {"1h30m", nil}, {"", nil}, {"s", nil}, {"1s\n", nil},
			{"9999999999", nil},
		})
	})
	t.Run("Size", func(t *testing.T) {
		check(t, quantity.Size(1, 8<<30), []parseCase{
			{"1", 1}, {"1b", 1}, {"1k", 1024}, {"1K", 1024}, {"8 m", 8 << 20}, {" 8m ", 8 << 20}, {"8G", 8 << 30}, {"0", nil}, {"9g", nil}, {"8589934593", nil},
			{"1t", nil}, {"1kb", nil}, {"1.5m", nil}, {"-1", nil}, {"", nil}, {"k", nil}, {"1m\n", nil}, {"1\tm", nil}, {"0x1", nil},
			{"9223372036854775807", nil}, {"9223372036854775807k", nil}, {"17179869184g", nil}, {"17179869185g", nil}, {"99999999999999999999", nil}, {"١k", nil},
		})
	})
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"0", "1", "8m", "1 k", "9223372036854775807g", "8589934592", "1B", "017", "17179869185g"} {
		f.Add(seed)
	}
	const least, most = 1, 1 << 40
	parse := quantity.Size(least, most)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parse(text)
		if err != nil {
			return
		}
		if n < least || n > most {
			t.Fatalf("%q gave %d, which is out of bounds", text, n)
		}
		if again, err := parse(strconv.FormatInt(n, 10)); err != nil || again != n {
			t.Fatalf("%q gave %d, and that %d, %v", text, n, again, err)
		}
		if text != strings.TrimSpace(text) && strings.ContainsAny(text, "\r\n\x00") {
			t.Fatalf("%q was taken", text)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"0", "60", "240s", "10ms", "106751d", "106752d", "1h", "00001m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := quantity.Duration(text)
		if err != nil {
			return
		}
		if d < 0 || d%time.Millisecond != 0 {
			t.Fatalf("%q gave %v", text, d)
		}
		if ms := d.Milliseconds(); ms < 1e9 {
			if again, err := quantity.Duration(strconv.FormatInt(ms, 10) + "ms"); err != nil || again != d {
				t.Fatalf("%q gave %v, and that %v, %v", text, d, again, err)
			}
		}
	})
}
