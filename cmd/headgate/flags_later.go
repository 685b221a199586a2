package main

import (
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"
)

// laterUsage is the help of a flag that is accepted without effect.
const laterUsage = "has no effect in this version"

// addLaterFlags declares the flags of ingress-nginx that Headgate accepts without
// effect, so that a Deployment for ingress-nginx starts: their names, types and
// defaults. A flag that gets an effect moves to newCommand.
func addLaterFlags(f *pflag.FlagSet) {
	for name, value := range map[string]any{
		"enable-annotation-validation":     true,
		"enable-metrics":                   false,
		"enable-ssl-passthrough":           false,
		"metrics-per-host":                 true,
		"metrics-per-undefined-host":       false,
		"profiling":                        true,
		"report-status-classes":            false,
		"add_dir_header":                   false,
		"alsologtostderr":                  false,
		"legacy_stderr_threshold_behavior": true,
		"logtostderr":                      true,
		"one_output":                       false,
		"skip_headers":                     false,
		"skip_log_headers":                 false,
		"internal-logger-address":          "127.0.0.1:11514",
		"maxmind-edition-ids":              "GeoLite2-City,GeoLite2-ASN",
		"maxmind-license-key":              "",
		"maxmind-mirror":                   "",
		"alsologtostderrthreshold":         "0",
		"log_backtrace_at":                 ":0",
		"log_dir":                          "",
		"log_file":                         "",
		"stderrthreshold":                  "2",
		"vmodule":                          "",
		"default-server-port":              8181,
		"dynamic-configuration-retries":    15,
		"health-check-timeout":             10,
		"maxmind-retries-count":            1,
		"monitor-max-batch-size":           10000,
		"profiler-port":                    10245,
		"ssl-passthrough-proxy-port":       442,
		"status-port":                      10246,
		"stream-port":                      10247,
		"maxmind-retries-timeout":          time.Duration(0),
		"sync-period":                      time.Duration(0),
		"length-buckets":                   []float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100},
		"size-buckets":                     []float64{10, 100, 1000, 10000, 100000, 1e6, 1e7},
		"time-buckets":                     []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	} {
		switch value := value.(type) {
		case bool:
			f.Bool(name, value, laterUsage)
		case string:
			f.String(name, value, laterUsage)
		case int:
			f.Int(name, value, laterUsage)
		case time.Duration:
			f.Duration(name, value, laterUsage)
		case []float64:
			f.Float64Slice(name, value, laterUsage)
		}
	}
	f.Float64("bucket-factor", 0, laterUsage)
	f.Float32("sync-rate-limit", 0.3, laterUsage)
	f.Uint32("max-buckets", 100, laterUsage)
	f.Uint64("log_file_max_size", 1800, laterUsage)
	f.StringSlice("exclude-socket-metrics", nil, laterUsage)
	f.IP("profiler-address", net.IPv4(127, 0, 0, 1), laterUsage)
}

// warnLaterFlags logs the flags that were set and have no effect.
func warnLaterFlags(f *pflag.FlagSet, log *slog.Logger) {
	f.Visit(func(flag *pflag.Flag) {
		if flag.Usage == laterUsage {
			log.Warn("--" + flag.Name + " " + laterUsage)
		}
	})
}
