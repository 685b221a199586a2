package main

import "testing"

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 20: 1, 21: 2, 50: 3, 99: 5, 100: 5} {
		if got := percentile(values, p); got != want {
			t.Errorf("percentile %v of %v is %v and not %v", p, values, got, want)
		}
	}
}

func TestCheckSameWork(t *testing.T) {
	const headgate = "proxy_set_header A a;\nlocation / {\n proxy_buffering off;\n}\nlocation @p {\n proxy_buffering on;\n}\n"
	if err := checkSameWork("location / {\nproxy_buffering off;\nproxy_set_header A a;\n}\n", headgate); err != nil {
		t.Error(err)
	}
	for _, static := range []string{
		"location / {\nproxy_buffering off;\n}\n",
		"location / {\nproxy_buffering off;\nproxy_set_header A a;\nproxy_set_header B b;\n}\n",
	} {
		if checkSameWork(static, headgate) == nil {
			t.Errorf("passed as the same work:\n%s", static)
		}
	}
}
