package instance

import (
	"strings"
	"testing"
)

func TestOnly(t *testing.T) {
	for want, dirs := range map[string][]string{
		"no controller of this user runs here":                           {},
		"2 controllers run here: set --run-dir to one of /run/a, /run/b": {"/run/a", "/run/b"},
	} {
		if _, err := only(dirs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", dirs, err)
		}
	}
	if dir, err := only([]string{"/run/a"}); dir != "/run/a" || err != nil {
		t.Errorf("%s %v", dir, err)
	}
}
