package traffic

import (
	"math"
	"slices"
	"strings"
)

// Prefix is that of the names of all families.
const Prefix = "nginx_ingress_controller_"

// Buckets are the upper bounds of histograms, in rising order: of times in seconds, of sizes of
// requests and responses, and of bytes_sent, in bytes.
type Buckets struct{ Time, Length, Size []float64 }

// DefaultBuckets are those of ingress-nginx.
func DefaultBuckets() Buckets {
	return Buckets{
		Time:   []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		Length: []float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100},
		Size:   []float64{10, 100, 1000, 10000, 100000, 1e6, 1e7},
	}
}

// DefaultBudget is the usual maximum number of series of a namespace.
const DefaultBudget = 10000

// A family is one metric with all its series.
type family struct {
	name, help string
	// offset is the place of its counts, and bounds its buckets; nil for a counter.
	offset int
	bounds []float64
	// unit is what the sum is divided by.
	unit float64
	// native is the place of its native histogram, -1 if it has none.
	native int
}

// families are those that are not excluded, and cells is the number of a series' counts: of
// requests, and for each histogram the sum, the buckets, and one for larger values. Their order
// is that of lua/headgate/traffic.lua.
func (s Settings) families() (list []family, cells int) {
	add := func(f family, help string) {
		f.name, f.help = Prefix+f.name, help
		f.offset = cells
		cells++
		if f.bounds != nil {
			cells += len(f.bounds) + 1
		}
		if !s.excludes(f.name) {
			list = append(list, f)
		}
	}
	b := s.Buckets
	// The names begin with Prefix: nginx_ingress_controller_requests.
	add(family{name: "requests", native: -1}, "Number of requests.")
	add(family{name: "request_duration_seconds", bounds: b.Time, unit: 1000, native: 0}, "Time from the first byte of a request to the end of its response, in seconds.")
	add(family{name: "connect_duration_seconds", bounds: b.Time, unit: 1000, native: 1}, "Time to connect to the endpoint, in seconds. Requests that were retried, or that no backend got, are not in it.")
	add(family{name: "header_duration_seconds", bounds: b.Time, unit: 1000, native: 2}, "Time to the header of the backend's response, in seconds. Requests that were retried, or that no backend got, are not in it.")
	add(family{name: "response_duration_seconds", bounds: b.Time, unit: 1000, native: 3}, "Time to the end of the backend's response, in seconds. Requests that were retried, or that no backend got, are not in it.")
	add(family{name: "request_size", bounds: b.Length, unit: 1, native: 4}, "Size of requests in bytes, with request line, header and body.")
	add(family{name: "response_size", bounds: b.Length, unit: 1, native: 5}, "Size of responses in bytes, with header.")
	add(family{name: "bytes_sent", bounds: b.Size, unit: 1, native: -1}, "Size of responses in bytes, with header. Deprecated: the same as response_size, with other buckets.")
	return list, cells
}

// Names are those of all families without the prefix.
func Names() []string {
	families, _ := Settings{}.families()
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = strings.TrimPrefix(f.name, Prefix)
	}
	return names
}

// Uncounted are the families to leave out, without the prefix.
func (s Settings) Uncounted() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return !s.excludes(name) })
}

func (s Settings) excludes(name string) bool {
	return slices.ContainsFunc(s.Excluded, func(excluded string) bool {
		return strings.TrimPrefix(excluded, Prefix) == strings.TrimPrefix(name, Prefix)
	})
}

// Milliseconds are the bounds of times as workers compare them, which know whole milliseconds.
func (b Buckets) Milliseconds() []int64 {
	return floors(b.Time, func(bound float64) float64 { return bound*1000 + 1e-6 })
}

// Bytes are the bounds of sizes as workers compare them.
func (b Buckets) Bytes() (length, size []int64) {
	whole := func(bound float64) float64 { return bound }
	return floors(b.Length, whole), floors(b.Size, whole)
}

// floors rounds bounds down: the values are whole numbers.
func floors(bounds []float64, scale func(float64) float64) []int64 {
	list := make([]int64, len(bounds))
	for i, bound := range bounds {
		list[i] = int64(math.Floor(min(scale(bound), 1<<53)))
	}
	return list
}
