package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
)

func TestParseStatuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "none", "  ": "none", "404": "404", "503,404": "404,503", " 404 , 503 ": "404,503", "404,404": "404",
		"300,363,364,427,428,599": "300,363,364,427,428,599", "0404": "404",
	} {
		got, err := model.ParseStatuses(text)
		if err != nil || got.String() != want || got.Empty() != (want == "none") {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{",", "404,", "x", "404 503", "404;503", "299", "600", "0", "-404", "+404", "408", "444", "499", "404,499", "65940", "4.04e2"} {
		if got, err := model.ParseStatuses(text); err == nil || !got.Empty() {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

// Each status is in the sets that have it, and in no others.
func TestStatusesHold(t *testing.T) {
	number := 0
	for status := -1; status < 1000; status++ {
		var one model.Statuses
		can := one.Add(status)
		if can != one.Has(status) || can == one.Empty() {
			t.Errorf("%d: added %v, has %v, empty %v", status, can, one.Has(status), one.Empty())
		}
		if can {
			number++
			if got := slices.Collect(one.All()); !slices.Equal(got, []int{status}) {
				t.Errorf("of %d: %v", status, got)
			}
		}
	}
	if number != 300-3 {
		t.Errorf("%d statuses can be caught", number)
	}
	for status := range must(t, "404,503").All() {
		if status != 404 {
			t.Errorf("%d comes first", status)
		}
		break
	}
}

func must(t testing.TB, text string) model.Statuses {
	t.Helper()
	set, err := model.ParseStatuses(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// What is read is what is written, and nothing else than numbers and commas.
func FuzzParseStatuses(f *testing.F) {
	for _, seed := range []string{"", "404", "404,503", "404,", "404\n;", "4o4", "99999999999999999999", " 300, 599 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := model.ParseStatuses(text)
		if err != nil || set.Empty() {
			return
		}
		if strings.Trim(set.String(), "0123456789,") != "" {
			t.Errorf("%q: %s", text, set)
		}
		if again, err := model.ParseStatuses(set.String()); err != nil || again != set {
			t.Errorf("%q: %s, then %s, %v", text, set, again, err)
		}
	})
}
