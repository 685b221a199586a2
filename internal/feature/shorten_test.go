package feature

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/finding"
)

// TestShortenList: a list is cut behind an element.
func TestShortenList(t *testing.T) {
	names := strings.Fields(strings.Repeat("www.example.com ", 9))
	if got, want := finding.ShortenList(names), strings.Repeat("www.example.com, ", 3)+"www.example.com and 5 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := finding.ShortenList(names[:2]), "www.example.com, www.example.com"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	long := strings.Repeat("x", 100)
	if got, want := finding.ShortenList([]string{long, "y"}), long[:80]+"…"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, message := badValue("v", errors.New("must be one of "+strings.Join(strings.Fields(strings.Repeat("$variable ", 50)), ", ")))
	if !strings.HasSuffix(message, "$variable and 25 more") {
		t.Errorf("got %q", message)
	}
}

// TestUsersAreHidden: no finding and no explanation has the password of a URL.
func TestUsersAreHidden(t *testing.T) {
	for text, want := range map[string]string{
		"https://user:pa@ss@auth.example:80/a@b?c=d@e": "https://…@auth.example:80/a@b?c=d@e",
		"see HTTP://token@x and redis://:p@y/":         "see HTTP://…@x and redis://…@y/",
		"http://auth.example/a@b":                      "http://auth.example/a@b",
		"user@auth.example":                            "user@auth.example",
		"://a@b http:/c@d":                             "://a@b http:/c@d",
	} {
		if got := finding.Shorten(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if _, message := badValue(text, errors.New("parse "+text)); message != `invalid value "`+want+`": parse `+want {
			t.Errorf("%q: %s", text, message)
		}
		if got := valueText([]string{text, text}); got != want+", "+want {
			t.Errorf("%q: the value %s", text, got)
		}
	}
	if got := finding.Shorten("http://" + strings.Repeat("p", 200) + "@x/"); got != "http://…@x/" {
		t.Errorf("a long password: %s", got)
	}
}
