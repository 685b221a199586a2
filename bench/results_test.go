package main

import "testing"

func TestCheck(t *testing.T) {
	good := func() Results {
		return Results{
			CPU:        []CPURow{{Ratio: maxRatio}, {Ratio: 9, More: true}, {Ratio: 9, More: true, BaseMore: true, Budget: 1}},
			Handshakes: []CPURow{{Ratio: maxRatio}},
			Scales:     []Scale{{P50: 5, Requests: 1, ConfHash: "a"}, {P50: 5, Requests: 1, ConfHash: "a"}},
		}
	}
	if err := good().check(); err != nil {
		t.Errorf("good results: %v", err)
	}
	for name, spoil := range map[string]func(*Results){
		"ratio":        func(r *Results) { r.CPU[0].Ratio = maxRatio + 0.1 },
		"added":        func(r *Results) { r.CPU[0] = CPURow{Ratio: maxMore + 0.1, More: true, Budget: 0.06} },
		"handshake":    func(r *Results) { r.Handshakes[0].Ratio = maxRatio + 0.1 },
		"p50":          func(r *Results) { r.Scales[1].P50 = maxP50 + 1 },
		"a reload":     func(r *Results) { r.Scales[1].Reloads = 1 },
		"a loss":       func(r *Results) { r.Scales[0].Lost = 1 },
		"no bystander": func(r *Results) { r.Scales[0].Requests = 0 },
		"nginx.conf":   func(r *Results) { r.Scales[1].ConfHash = "b" },
	} {
		r := good()
		spoil(&r)
		if r.check() == nil {
			t.Errorf("%s is broken and passes", name)
		}
	}
}
