package traffic

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// A report is what one worker has counted since its last one.
type report struct {
	// worker is the number of the worker.
	worker uint64
	series []counted
	// withoutIngress is the number of requests that were not counted, since they are of no
	// Ingress.
	withoutIngress uint64
}

// counted is the requests of a route of a host with one method and status.
type counted struct {
	group
	status, method uint32
	// cells are what is added to the places of a series, see Settings.families.
	cells []cell
	// natives are what is added to buckets of native histograms.
	natives []bucket
	// examples are requests with a trace.
	examples []example
}

// An example is a request with a trace.
type example struct {
	// place is that of the bucket of its time.
	place int
	// seconds is how long it took, and at when it was over, as Unix time.
	seconds, at float64
	trace       string
}

// A group is the labels of a route.
type group struct {
	// Unit is the name of the host's unit, empty for none.
	Unit      string `json:"unit"`
	Host      string `json:"host"`
	Namespace string `json:"namespace"`
	Ingress   string `json:"ingress"`
	Service   string `json:"service"`
	Path      string `json:"path"`
	// Canary is the backend that was asked instead of the route's own.
	Canary string `json:"canary"`
}

type cell struct {
	place int
	count uint64
}

type bucket struct {
	histogram, key int
	count          uint64
}

// zeroKey stands for the bucket of what is 0.
const zeroKey = math.MinInt32

// Sizes of what lua/headgate/traffic_report.lua writes, in the order of the machine's bytes.
const reportBytes, headBytes, cellBytes, nativeBytes, exampleBytes, totalBytes = 16, 24, 10, 14, 50, 24

var errShort = errors.New("the report is too short")

// parse reads a report.
func parse(data []byte) (report, error) {
	var r report
	if len(data) < reportBytes {
		return r, errShort
	}
	r.withoutIngress, r.worker = number(data), number(data[8:])
	for data = data[reportBytes:]; len(data) > 0; {
		one, rest, err := parseSeries(data)
		if err != nil {
			return report{}, err
		}
		r.series = append(r.series, one)
		data = rest
	}
	return r, nil
}

func parseSeries(data []byte) (one counted, rest []byte, err error) {
	if len(data) < headBytes {
		return one, nil, errShort
	}
	var head [6]int
	for i := range head {
		head[i] = int(binary.NativeEndian.Uint32(data[4*i:]))
	}
	labels, cells, natives, examples := head[0], head[1], head[2], head[3]
	one.status, one.method = uint32(head[4]), uint32(head[5])
	data = data[headBytes:]
	if len(data) < labels+cells*cellBytes+natives*nativeBytes+examples*exampleBytes {
		return one, nil, errShort
	}
	for ; cells > 0; cells-- {
		one.cells = append(one.cells, cell{int(binary.NativeEndian.Uint16(data)), number(data[2:])})
		data = data[cellBytes:]
	}
	for ; natives > 0; natives-- {
		key := int(int32(binary.NativeEndian.Uint32(data[2:])))
		one.natives = append(one.natives, bucket{int(binary.NativeEndian.Uint16(data)), key, number(data[6:])})
		data = data[nativeBytes:]
	}
	for ; examples > 0; examples-- {
		one.examples = append(one.examples, parseExample(data))
		data = data[exampleBytes:]
	}
	if err := json.Unmarshal(data[:labels], &one.group); err != nil {
		return one, nil, fmt.Errorf("read the labels in a report: %w", err)
	}
	return one, data[labels:], nil
}

func parseExample(data []byte) example {
	return example{
		place:   int(binary.NativeEndian.Uint16(data)),
		seconds: float(data[2:]) / 1000, at: float(data[10:]), trace: string(data[18:exampleBytes]),
	}
}

// isValid reports whether it may be shown: trace ids are 32 hexadecimal digits.
func (e example) isValid() bool {
	return e.seconds >= 0 && e.seconds < 1e9 && e.at > 0 && e.at < 1e11 && strings.Trim(e.trace, "0123456789abcdef") == ""
}

// A total is how many requests a worker that has ended had counted.
type total struct{ worker, requests uint64 }

func parseTotal(data []byte) (total, error) {
	if len(data) != totalBytes {
		return total{}, errors.New("the total of a worker does not have the right length")
	}
	return total{number(data), number(data[16:])}, nil
}

// requests is the number of requests.
func (r report) requests() uint64 {
	sum := r.withoutIngress
	for _, c := range r.series {
		sum += c.requests()
	}
	return sum
}

func float(data []byte) float64 { return math.Float64frombits(binary.NativeEndian.Uint64(data)) }

// number reads a count, which Lua has as a floating-point number.
func number(data []byte) uint64 {
	value := float(data)
	if !(value >= 0 && value < 1<<63) {
		return 0
	}
	return uint64(value)
}

func (g group) route() route { return route{g.Namespace, g.Ingress, g.Service, g.Path} }

// requests is the number of requests.
func (c counted) requests() uint64 {
	if len(c.cells) > 0 && c.cells[0].place == 0 {
		return c.cells[0].count
	}
	return 0
}

// methods are the names of NGINX's bits.
var methods = map[uint32]string{
	0x2: "GET", 0x4: "HEAD", 0x8: "POST", 0x10: "PUT", 0x20: "DELETE", 0x40: "MKCOL", 0x80: "COPY", 0x100: "MOVE", 0x200: "OPTIONS",
	0x400: "PROPFIND", 0x800: "PROPPATCH", 0x1000: "LOCK", 0x2000: "UNLOCK", 0x4000: "PATCH", 0x8000: "TRACE", 0x10000: "CONNECT",
}

// labels are those of its series.
func (c counted) labels(classes bool) labels {
	l := labels{route: c.route(), host: c.Host, canary: c.Canary, method: methods[c.method], status: fmt.Sprintf("%03d", c.status)}
	if l.method == "" {
		l.method = "UNKNOWN"
	}
	if c.Ingress == Others {
		l.method = ""
	}
	if classes || c.Ingress == Others {
		l.status = class(c.status)
	}
	return l
}

// class is the class of a status.
func class(status uint32) string { return fmt.Sprint(status/100) + "xx" }
