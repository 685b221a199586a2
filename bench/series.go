package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Series is what the series of request metrics take: those of seriesMethods and two statuses, for
// each of many hosts, after one request each through one worker.
type Series struct {
	Series int          `json:"series"`
	Memory []SeriesStep `json:"memory"`
	// Scrapes are one after the other, of all series.
	Scrapes []Scrape `json:"scrapes"`
}

// A SeriesStep is the memory in bytes before the requests and after them, with request metrics
// and without.
type SeriesStep struct {
	Metrics bool `json:"metrics"`
	// Controller is resident; it has answered no scrape yet.
	ControllerBefore int64 `json:"controller_before_bytes"`
	ControllerAfter  int64 `json:"controller_after_bytes"`
	// Worker is its private memory, WorkerMost the most of it between.
	WorkerBefore int64 `json:"worker_before_bytes"`
	WorkerMost   int64 `json:"worker_most_bytes"`
	WorkerAfter  int64 `json:"worker_after_bytes"`
	// Resident is all that the worker has touched, with the dictionaries that workers share.
	ResidentBefore int64 `json:"worker_resident_before_bytes"`
	ResidentAfter  int64 `json:"worker_resident_after_bytes"`
	SharedBefore   int64 `json:"worker_shared_before_bytes"`
	SharedAfter    int64 `json:"worker_shared_after_bytes"`
}

// A Scrape is one of /metrics.
type Scrape struct {
	Format string  `json:"format"`
	Time   float64 `json:"ms"`
	Bytes  int64   `json:"bytes"`
	// ControllerMost is the most resident memory that the controller ever had.
	ControllerMost int64 `json:"controller_most_bytes"`
}

var seriesMethods = []string{"GET", "POST", "PUT", "DELETE", "PATCH"}

// missing is a path for which the origin has the status 404.
const missing = "/missing"

// seriesPace is how many requests are sent in each seriesTick: a worker has a limit of series
// that it has not reported yet, and it reports once a second.
const (
	seriesPace = 500
	seriesTick = 100 * time.Millisecond
)

// reportTime is how long what was counted or traced may take to be with the controller, and
// exported: a report leaves a worker within a second, and the controller has it within another one.
const reportTime = 6 * time.Second

func measureSeries(ctx context.Context, s *stage) (*Series, error) {
	origin, port, err := startOrigin()
	if err != nil {
		return nil, err
	}
	defer origin.Close()
	results := &Series{Series: hosts * len(seriesMethods) * 2}
	for _, metrics := range []bool{false, true} {
		if err := s.measureSteps(ctx, port, metrics, results); err != nil {
			return nil, fmt.Errorf("with request metrics: %t: %w", metrics, err)
		}
	}
	return results, nil
}

// startOrigin answers with the status that a path asks for.
func startOrigin() (*http.Server, int, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == missing {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "hello from the backend\n") // who went away needs none
	})}
	go func() {
		// It ends when it is closed.
		_ = server.Serve(listener)
	}()
	return server, listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *stage) measureSteps(ctx context.Context, port int, metrics bool, results *Series) error {
	at, err := s.place(fmt.Sprintf("series-%t", metrics))
	if err != nil {
		return err
	}
	if err := writeFolder(at.folder, hosts, port, false, exactRouting); err != nil {
		return err
	}
	defer func(before []string) { s.arguments = before }(s.arguments)
	if metrics {
		s.arguments = slices.Concat(s.arguments, []string{"--enable-metrics", "--metrics-series-per-namespace", strconv.Itoa(2 * results.Series)})
	}
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return err
	}
	defer h.process.stop()
	step := SeriesStep{Metrics: metrics}
	if err := h.takeStep(&step.ControllerBefore, &step.WorkerBefore, &step.ResidentBefore, &step.SharedBefore); err != nil {
		return err
	}
	if step.WorkerMost, err = h.makeSeries(ctx); err != nil {
		return err
	}
	if err := h.takeStep(&step.ControllerAfter, &step.WorkerAfter, &step.ResidentAfter, &step.SharedAfter); err != nil {
		return err
	}
	results.Memory = append(results.Memory, step)
	if !metrics {
		return nil
	}
	for _, one := range []struct{ name, accept, encoding string }{
		{"text", "", ""}, {"text, gzip", "", "gzip"}, {"protobuf", acceptProtobuf, ""}, {"protobuf, gzip", acceptProtobuf, "gzip"},
	} {
		scrape, err := h.scrape(ctx, one.accept, one.encoding, results.Series)
		if err != nil {
			return fmt.Errorf("scrape as %s: %w", one.name, err)
		}
		scrape.Format = one.name
		results.Scrapes = append(results.Scrapes, scrape)
	}
	return nil
}

// takeStep reads the memory of the controller, and the worker's own, all and shared.
func (h *headgate) takeStep(controller, private, resident, shared *int64) (err error) {
	*private, err = privateMemory(h.worker)
	for _, one := range []struct {
		to    *int64
		pid   int
		field string
	}{{controller, h.process.cmd.Process.Pid, "VmRSS"}, {resident, h.worker, "VmRSS"}, {shared, h.worker, "RssShmem"}} {
		var failed error
		*one.to, failed = status(one.pid, one.field)
		err = cmp.Or(err, failed)
	}
	return err
}

// makeSeries sends a request for each series, waits until the controller has all of them, and
// returns the most private memory that the worker had meanwhile.
func (h *headgate) makeSeries(ctx context.Context) (most int64, err error) {
	begin := time.Now()
	c := h.client()
	defer c.close()
	sent := 0
	for i := range hosts {
		for _, method := range seriesMethods {
			for path, want := range map[string]int{"/": http.StatusOK, missing: http.StatusNotFound} {
				if got, err := c.ask(ctx, method, path, hostName(i)); err != nil || got.status != want {
					return 0, fmt.Errorf("%s %s%s: status %d and not %d: %w", method, hostName(i), path, got.status, want, cmp.Or(err, errors.New("another answer")))
				}
				sent++
			}
		}
		if sent%seriesPace == 0 {
			now, err := privateMemory(h.worker)
			if err != nil {
				return 0, err
			}
			most = max(most, now)
			time.Sleep(time.Until(begin.Add(time.Duration(sent/seriesPace) * seriesTick)))
		}
	}
	fmt.Fprintf(os.Stderr, "series: %d requests in %.1f s\n", sent, time.Since(begin).Seconds())
	for end := time.Now().Add(reportTime); time.Now().Before(end); time.Sleep(seriesTick) {
		now, err := privateMemory(h.worker)
		if err != nil {
			return 0, err
		}
		most = max(most, now)
	}
	return most, nil
}

const acceptProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// scrape asks for /metrics once. In text, each series must be there with its one request, and no
// others.
func (h *headgate) scrape(ctx context.Context, accept, encoding string, series int) (one Scrape, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(h.health)+"/metrics", nil)
	if err != nil {
		return one, err
	}
	request.Header.Set("Accept", accept)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	if encoding != "" {
		request.Header.Set("Accept-Encoding", encoding)
	}
	begin := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return one, err
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Encoding"); got != encoding || response.StatusCode != http.StatusOK {
		return one, fmt.Errorf("status %d, encoding %q", response.StatusCode, got)
	}
	if accept == "" && encoding == "" {
		one.Bytes, err = checkSeries(response.Body, series)
	} else {
		one.Bytes, err = io.Copy(io.Discard, response.Body)
	}
	one.Time = milliseconds(time.Since(begin))
	if err != nil {
		return one, err
	}
	one.ControllerMost, err = status(h.process.cmd.Process.Pid, "VmHWM")
	return one, err
}

// checkSeries reads metrics as text.
func checkSeries(body io.Reader, series int) (size int64, err error) {
	reader := bufio.NewReaderSize(body, 1<<20)
	found := 0
	for {
		line, err := reader.ReadSlice('\n')
		size += int64(len(line))
		if bytes.HasPrefix(line, []byte("nginx_ingress_controller_requests{")) {
			if !bytes.HasSuffix(line, []byte("} 1\n")) || bytes.Contains(line, []byte(`"_others"`)) {
				return size, fmt.Errorf("not a series of one request: %q", line)
			}
			found++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return size, err
		}
	}
	if found != series {
		return size, fmt.Errorf("%d series and not %d", found, series)
	}
	return size, nil
}

func (r *Series) print(w *tabwriter.Writer) {
	fmt.Fprintln(w)
	fmt.Fprintf(w, "%d series\tbefore\tmost\tafter\n", r.Series)
	for _, step := range r.Memory {
		name := map[bool]string{false: "without metrics: ", true: "with metrics: "}[step.Metrics]
		for _, row := range []struct {
			what                string
			before, most, after int64
		}{
			{"controller, resident", step.ControllerBefore, 0, step.ControllerAfter},
			{"worker, private", step.WorkerBefore, step.WorkerMost, step.WorkerAfter},
			{"worker, resident", step.ResidentBefore, 0, step.ResidentAfter},
			{"  of that, shared dictionaries", step.SharedBefore, 0, step.SharedAfter},
		} {
			most := ""
			if row.most > 0 {
				most = mebibytes(row.most)
			}
			fmt.Fprintln(w, strings.Join([]string{name + row.what, mebibytes(row.before), most, mebibytes(row.after)}, "\t"))
		}
	}
	fmt.Fprintln(w, "\nscrape\ttime\tsize\tcontroller, resident, most until then")
	for _, scrape := range r.Scrapes {
		fmt.Fprintf(w, "%s\t%.0f ms\t%s\t%s\n", scrape.Format, scrape.Time, mebibytes(scrape.Bytes), mebibytes(scrape.ControllerMost))
	}
}
