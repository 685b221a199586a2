package directive_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/directive"
	"github.com/headgate/headgate/internal/model"
)

func TestZonesAndLists(t *testing.T) {
	t.Parallel()
	requests := directive.Directive{Name: "limit_req_1", As: "limit_req", Plain: true, Kind: directive.RequestLimit}
	connections := directive.Directive{Name: "limit_conn_1", As: "limit_conn", Plain: true, Kind: directive.ConnectionLimit}
	types := directive.Directive{Name: "types", Plain: true, Kind: directive.Listed, Words: []string{"*", "text/css", "text/plain"}}
	all := directive.List{requests, connections, types}
	for _, c := range []struct {
		value model.ProfileValue
		want  string
	}{
		{requests.LimitsRequests("one_Z", 0, 0), "limit_req zone=one_Z;"},
		{requests.LimitsRequests("one", 5, 0), "limit_req zone=one burst=5;"},
		{requests.LimitsRequests("one", 5, 5), "limit_req zone=one burst=5 nodelay;"},
		{requests.LimitsRequests("one", 5, 9), "limit_req zone=one burst=5 nodelay;"},
		{requests.LimitsRequests("one", 5, 2), "limit_req zone=one burst=5 delay=2;"},
		{connections.LimitsConnections("two", 7), "limit_conn two 7;"},
		{types.Listing([]string{"text/plain", "text/css", "text/plain"}), "types text/css text/plain;"},
	} {
		if got := all.Lines(model.Profile{}.With(c.value)); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for _, bad := range []func(){
		func() { requests.LimitsRequests("a b", 0, 0) }, func() { connections.LimitsConnections("", 1) }, func() { types.Listing([]string{"x;"}) },
		func() { all.Lines(model.Profile{}.With(model.ProfileValue{Name: "limit_req_1", Text: "203b,0,0"})) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			bad()
		}()
	}
}
