package health

import (
	"compress/gzip"
	"log/slog"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Requests are the metrics of requests, of which there may be hundreds of thousands: Stream
// hands them over in parts of families.
type Requests interface {
	Stream(take func(part *dto.MetricFamily, more bool) error) error
}

// scrapes is how many are answered at once: each may take hundreds of megabytes, and anyone who
// reaches the port can ask.
const scrapes = 4

// metricsHandler serves the metrics of a registry, and of requests unless that is nil.
//
// Those of the registry are gathered before the status is sent. What fails after that ends the
// connection, so that no client takes a part for all.
func metricsHandler(registry *prometheus.Registry, requests Requests, log *slog.Logger) http.Handler {
	places := make(chan struct{}, scrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-r.Context().Done():
			return
		}
		format := negotiate(r.Header)
		families, err := registry.Gather()
		if err != nil {
			log.Error("metrics can't be served", "error", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", string(format))
		if err := send(w, r, format, families, requests); err != nil {
			// Most clients with an error are gone.
			if r.Context().Err() == nil {
				log.Error("metrics were not served to their end", "error", err)
			}
			panic(http.ErrAbortHandler)
		}
	})
}

// send writes metrics, compressed if the client takes that.
func send(w http.ResponseWriter, r *http.Request, format expfmt.Format, families []*dto.MetricFamily, requests Requests) error {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return write(newWriter(w, format), families, requests)
	}
	w.Header().Set("Content-Encoding", "gzip")
	compressed := gzip.NewWriter(w)
	if err := write(newWriter(compressed, format), families, requests); err != nil {
		return err
	}
	return compressed.Close()
}

// negotiate returns the format for a client.
func negotiate(header http.Header) expfmt.Format {
	one, _ := expfmt.NewOpenMetricsFormat(expfmt.OpenMetricsVersion_1_0_0)
	zero, _ := expfmt.NewOpenMetricsFormat(expfmt.OpenMetricsVersion_0_0_1)
	return expfmt.NegotiateAccept(header, one, zero, expfmt.NewFormat(expfmt.TypeProtoDelim), expfmt.NewFormat(expfmt.TypeTextPlain))
}

// write writes families, then those of requests.
func write(to writer, families []*dto.MetricFamily, requests Requests) error {
	for _, family := range families {
		if err := to.write(family, false); err != nil {
			return err
		}
	}
	if requests != nil {
		if err := requests.Stream(to.write); err != nil {
			return err
		}
	}
	return to.end()
}
