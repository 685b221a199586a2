package option

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestMetricsFlags: buckets must rise, and flags that contradict each other are rejected.
func TestMetricsFlags(t *testing.T) {
	for _, c := range []struct{ flags, problem string }{
		{"", ""},
		{"--time-buckets=0.1,0.5,2 --length-buckets=5 --size-buckets=1e3,1e4", ""},
		{"--bucket-factor=1.1 --max-buckets=0 --exclude-socket-metrics=requests,nginx_ingress_controller_bytes_sent,gone", ""},
		{"--metrics-per-host=false", ""},
		{"--metrics-per-undefined-host --metrics-per-host=false", "--metrics-per-undefined-host requires --metrics-per-host"},
		{"--time-buckets=1,1", "--time-buckets: 1 must be greater than 1 before it"},
		{"--length-buckets=2,1", "--length-buckets: 1 must be greater than 2 before it"},
		{"--size-buckets=0,100", ""},
		{"--size-buckets=-1", "invalid value -1 of --size-buckets"},
		{"--size-buckets=NaN", "invalid value NaN of --size-buckets"},
		{"--time-buckets=" + strings.TrimSuffix(strings.Repeat("1,", 101), ","), "must have 1 to 100 numbers"},
		{"--bucket-factor=1", ""},
		{"--bucket-factor=-1", `invalid value "-1" of --bucket-factor: must be greater than 1`},
		{"--bucket-factor=NaN", "of --bucket-factor"},
		{"--metrics-series-per-namespace=0", "must be 1 or more"},
	} {
		var o Metrics
		f := pflag.NewFlagSet("headgate", pflag.ContinueOnError)
		o.AddMetricsFlags(f)
		if err := f.Parse(append(strings.Fields(c.flags), "--enable-metrics")); err != nil {
			t.Errorf("%s: %v", c.flags, err)
			continue
		}
		err := o.checkMetrics()
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: the error is %v, want %q", c.flags, err, c.problem)
		}
	}
}
