package option

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/observe/traffic"
)

// maxBuckets is how many buckets a histogram may have.
const maxBuckets = 100

// Metrics are the flags about metrics of requests.
type Metrics struct {
	EnableMetrics                  bool
	metricsPerHost, metricsAnyHost bool
	statusClasses                  bool
	excludedMetrics                []string
	buckets                        traffic.Buckets
	bucketFactor                   float64
	maxNativeBuckets               uint32
	seriesPerNamespace             int
}

// AddMetricsFlags adds them.
func (o *Metrics) AddMetricsFlags(f *pflag.FlagSet) {
	usual := traffic.DefaultBuckets()
	f.BoolVar(&o.EnableMetrics, "enable-metrics", false, "count requests, and serve the metrics "+traffic.Prefix+"* of ingress-nginx")
	f.BoolVar(&o.metricsPerHost, "metrics-per-host", true, "count requests of each host apart, with the label host")
	f.BoolVar(&o.metricsAnyHost, "metrics-per-undefined-host", false, "count requests for names that no Ingress has as well, and those of wildcard hosts by the name that clients ask for; requires --metrics-per-host")
	f.BoolVar(&o.statusClasses, "report-status-classes", false, "count requests by class of status (2xx) instead of by status")
	f.StringSliceVar(&o.excludedMetrics, "exclude-socket-metrics", nil, "metrics of requests to leave out, with or without the prefix "+traffic.Prefix)
	f.Float64SliceVar(&o.buckets.Time, "time-buckets", usual.Time, "upper bounds in seconds of the buckets of durations")
	f.Float64SliceVar(&o.buckets.Length, "length-buckets", usual.Length, "upper bounds in bytes of the buckets of request_size and response_size")
	f.Float64SliceVar(&o.buckets.Size, "size-buckets", usual.Size, "upper bounds in bytes of the buckets of bytes_sent")
	f.Float64Var(&o.bucketFactor, "bucket-factor", 0, "factor by which the buckets of native histograms grow; there are none unless it is greater than 1")
	f.Uint32Var(&o.maxNativeBuckets, "max-buckets", 100, "maximum number of buckets of a native histogram, 0 for no maximum")
	f.IntVar(&o.seriesPerNamespace, "metrics-series-per-namespace", traffic.DefaultBudget, "maximum number of combinations of labels in the metrics of a namespace's requests; further requests are counted together, with the label ingress="+traffic.Others)
	f.Int("monitor-max-batch-size", 10000, withoutEffect+": NGINX's workers count all requests")
}

// checkMetrics rejects invalid values, where they have an effect.
func (o *Metrics) checkMetrics() error {
	if !o.EnableMetrics {
		return nil
	}
	var errs []error
	for _, b := range []struct {
		flag   string
		bounds []float64
	}{{"time-buckets", o.buckets.Time}, {"length-buckets", o.buckets.Length}, {"size-buckets", o.buckets.Size}} {
		errs = append(errs, checkBuckets(b.flag, b.bounds))
	}
	if !(o.bucketFactor >= 0) || math.IsInf(o.bucketFactor, 0) {
		errs = append(errs, usage.InvalidValue(o.bucketFactor, "bucket-factor", "greater than 1, or from 0 to 1 for no native histograms"))
	}
	if o.seriesPerNamespace < 1 {
		errs = append(errs, usage.InvalidValue(o.seriesPerNamespace, "metrics-series-per-namespace", "1 or more"))
	}
	if o.metricsAnyHost && !o.metricsPerHost {
		errs = append(errs, errors.New("--metrics-per-undefined-host requires --metrics-per-host"))
	}
	return errors.Join(errs...)
}

// WarnMetrics logs what has no effect.
func (o *Metrics) WarnMetrics(log *slog.Logger) {
	for _, name := range o.excludedMetrics {
		if known := traffic.Names(); !slices.Contains(known, strings.TrimPrefix(name, traffic.Prefix)) {
			log.Warn("--exclude-socket-metrics names a metric that does not exist", "metric", name, "known", strings.Join(known, ", "))
		}
	}
}

func checkBuckets(flag string, bounds []float64) error {
	if len(bounds) == 0 || len(bounds) > maxBuckets {
		return fmt.Errorf("invalid value of --%s: must have 1 to %d numbers", flag, maxBuckets)
	}
	for i, bound := range bounds {
		if math.IsNaN(bound) || math.IsInf(bound, 0) || bound < 0 {
			return fmt.Errorf("invalid value %v of --%s: must be 0 or more", bound, flag)
		}
		if i > 0 && bound <= bounds[i-1] {
			return fmt.Errorf("invalid value of --%s: %v must be greater than %v before it", flag, bound, bounds[i-1])
		}
	}
	return nil
}

// Traffic are the settings of the table of requests, without those of the pod.
func (o *Metrics) Traffic() traffic.Settings {
	settings := traffic.Settings{
		PerHost: o.metricsPerHost, AnyHost: o.metricsAnyHost, StatusClasses: o.statusClasses, Buckets: o.buckets,
		Excluded: o.excludedMetrics, MaxBuckets: int(o.maxNativeBuckets), Budget: o.seriesPerNamespace,
	}
	if o.bucketFactor > 1 {
		schema := traffic.Schema(o.bucketFactor)
		settings.Schema = &schema
	}
	return settings
}
