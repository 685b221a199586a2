package proxying

import (
	"testing"

	"github.com/headgate/headgate/internal/model"
)

// FuzzRetryConditions: what is taken is a set of NGINX's names, and reads the same
// once it is written.
func FuzzRetryConditions(f *testing.F) {
	for _, seed := range []string{"error timeout", "off", "http_503  non_idempotent", "error;", "", "x", "off error"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parseRetryConditions(text)
		if err != nil {
			return
		}
		if again, err := parseRetryConditions(set.String()); err != nil || again != set || set&^model.AllRetryConditions != 0 {
			t.Errorf("%q became %v, and that %v, %v", text, set, again, err)
		}
	})
}
