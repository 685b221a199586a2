package directive_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
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

func TestHaving(t *testing.T) {
	t.Parallel()
	requests := directive.Directive{Name: "limit_req_1", As: "limit_req", Plain: true, Kind: directive.RequestLimit}
	connections := directive.Directive{Name: "limit_conn_1", As: "limit_conn", Plain: true, Kind: directive.ConnectionLimit}
	all := directive.List{requests, connections}
	p := model.Profile{}.With(requests.LimitsRequests("one", 0, 0)).With(connections.LimitsConnections("two", 7))
	for _, c := range []struct {
		zones       directive.Zones
		want        []string
		limit, zone string
	}{
		{directive.Zones{Requests: []string{"one"}, Connections: []string{"two"}}, []string{"limit_req zone=one;", "limit_conn two 7;"}, "", ""},
		{directive.Zones{Requests: []string{"one"}}, []string{"limit_req zone=one;", "return 503;"}, "limit_conn", "two"},
		{directive.Zones{Requests: []string{"two"}, Connections: []string{"one"}}, []string{"return 503;", "return 503;"}, "limit_req", "one"},
		{directive.Zones{}, []string{"return 503;", "return 503;"}, "limit_req", "one"},
	} {
		if got := all.Having(c.zones).Lines(p); !slices.Equal(got, c.want) {
			t.Errorf("with %v: %q, want %q", c.zones, got, c.want)
		}
		if limit, zone := all.Lacking(p, c.zones); limit != c.limit || zone != c.zone {
			t.Errorf("with %v: %s lacks %q", c.zones, limit, zone)
		}
		if got := all.Having(c.zones).Lines(model.Profile{}); len(got) > 0 {
			t.Errorf("without a limit: %q", got)
		}
	}
}
