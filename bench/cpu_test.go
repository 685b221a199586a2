package main

import (
	"slices"
	"testing"
)

// TestDifferences: what a side costs more than another is the median of the differences in each round, and not
// the difference of the medians.
func TestDifferences(t *testing.T) {
	bare, logs := &side{name: "bare", costs: []float64{10, 20, 30}}, &side{name: "logs", costs: []float64{12, 22, 90}}
	plain, counts := &side{name: "plain", costs: []float64{40, 10, 20}}, &side{name: "counts", costs: []float64{41, 14, 23}}
	for _, one := range []struct {
		row  comparison
		want CPURow
	}{
		{comparison{"both", bare, plain, 0}, CPURow{Name: "both", Base: 20, Cost: 20, Ratio: 20.0 / 30, Low: 0.5, High: 4}},
		{comparison{"more", bare, beyond(counts, plain), 2}, CPURow{Name: "more", Base: 20, Cost: 3, Ratio: 0.1, Low: 0.1, High: 0.2, Budget: 2, More: true}},
		{
			comparison{"more by more", beyond(logs, bare), beyond(counts, plain), 0},
			CPURow{Name: "more by more", Base: 2, Cost: 3, Ratio: 1.5, Low: 0.5, High: 2, More: true, BaseMore: true},
		},
	} {
		if got := one.row.result(); got != one.want {
			t.Errorf("%+v, want %+v", got, one.want)
		}
	}
	sides := distinctSides([]comparison{{"a", bare, beyond(counts, plain), 0}, {"b", beyond(logs, bare), plain, 0}})
	if want := []*side{bare, plain, counts, logs}; !slices.Equal(sides, want) {
		t.Errorf("%v take turns, want %v", sides, want)
	}
}

func TestSameLog(t *testing.T) {
	byHand := "log_format upstreaminfo '$remote_addr [$proxy_host] [] $req_id';\n"
	ours := "log_format upstreaminfo escape=default '${remote_addr} [${proxy_upstream_name}] [${proxy_alternative_upstream_name}] ${req_id}';\n"
	if err := checkSameLog(byHand, ours); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"", "log_format upstreaminfo '$remote_addr [$proxy_host] []';\n"} {
		if checkSameLog(other, ours) == nil {
			t.Errorf("%q passes", other)
		}
	}
	if checkSameLog("", "") == nil {
		t.Error("no log on either side passes")
	}
}
