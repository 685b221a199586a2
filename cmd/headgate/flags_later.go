package main

import (
	"github.com/spf13/pflag"
)

// laterUsage is the help of a flag that is accepted without effect.
const laterUsage = withoutEffect + " in this version"

// addLaterFlags declares the flags of ingress-nginx that Headgate accepts without
// effect, so that a Deployment for ingress-nginx starts: their names, types and
// defaults. A flag that gets an effect moves to newCommand.
func addLaterFlags(f *pflag.FlagSet) {
	for name, value := range map[string]any{
		"enable-metrics":             false,
		"enable-ssl-passthrough":     false,
		"metrics-per-host":           true,
		"metrics-per-undefined-host": false,
		"report-status-classes":      false,
		"monitor-max-batch-size":     10000,
		"ssl-passthrough-proxy-port": 442,
		"stream-port":                10247,
		"length-buckets":             []float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100},
		"size-buckets":               []float64{10, 100, 1000, 10000, 100000, 1e6, 1e7},
		"time-buckets":               []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	} {
		switch value := value.(type) {
		case bool:
			f.Bool(name, value, laterUsage)
		case string:
			f.String(name, value, laterUsage)
		case int:
			f.Int(name, value, laterUsage)
		case []float64:
			f.Float64Slice(name, value, laterUsage)
		}
	}
	f.Float64("bucket-factor", 0, laterUsage)
	f.Uint32("max-buckets", 100, laterUsage)
	f.StringSlice("exclude-socket-metrics", nil, laterUsage)
}
