package feature

import (
	"errors"
	"strings"
	"testing"
)

// TestShortenList: a list is cut behind an element.
func TestShortenList(t *testing.T) {
	names := strings.Fields(strings.Repeat("www.example.com ", 9))
	if got, want := ShortenList(names), strings.Repeat("www.example.com, ", 3)+"www.example.com and 5 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ShortenList(names[:2]), "www.example.com, www.example.com"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	long := strings.Repeat("x", 100)
	if got, want := ShortenList([]string{long, "y"}), long[:80]+"…"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, message := badValue("v", errors.New("must be one of "+strings.Join(strings.Fields(strings.Repeat("$variable ", 50)), ", ")))
	if !strings.HasSuffix(message, "$variable and 25 more") {
		t.Errorf("got %q", message)
	}
}
