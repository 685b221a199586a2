package basicauth

import (
	"testing"

	"github.com/headgate/headgate/internal/model/prediction"
)

func TestPredict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy  policy
		headers map[string][]string
		want    int
	}{
		{policy{}, nil, 401},
		{policy{}, map[string][]string{"authorization": {"basic dTpw"}}, 0},
		{policy{}, map[string][]string{"Authorization": {"Bearer x"}}, 401},
		{policy{}, map[string][]string{"Authorization": {"Basic"}}, 401},
		{policy{}, map[string][]string{"Authorization": nil}, 401},
		{policy{Digest: true}, map[string][]string{"Authorization": {"Basic dTpw"}}, 401},
		{policy{Digest: true}, map[string][]string{"Authorization": {"Digest username=\"u\""}}, 0},
	} {
		got := predict(prediction.Request{Policy: c.policy, Headers: c.headers})
		if got.Status != c.want || got.Why == "" {
			t.Errorf("%+v, %v: %+v, want %d", c.policy, c.headers, got, c.want)
		}
	}
}
