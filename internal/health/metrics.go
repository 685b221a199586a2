package health

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Requests are the metrics of requests, of which there may be hundreds of thousands. Stream
// hands them over in parts of families, and Gather all at once.
type Requests interface {
	prometheus.Gatherer
	Stream(take func(part *dto.MetricFamily, more bool) error) error
}

// metricsHandler serves the metrics of a registry, and of requests unless that is nil.
func metricsHandler(registry *prometheus.Registry, requests Requests) http.Handler {
	if requests == nil {
		return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	}
	all := promhttp.HandlerFor(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := registry.Gather()
		if err != nil {
			return nil, err
		}
		more, err := requests.Gather()
		families = append(families, more...)
		slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
		return families, err
	}), promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The other format cannot have a family in parts.
		if format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...); format.FormatType() != expfmt.TypeTextPlain {
			all.ServeHTTP(w, r)
			return
		}
		families, err := registry.Gather()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
		out := io.Writer(w)
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			// The client has gone if this fails, as if writeText does.
			defer func() { _ = compressed.Close() }()
			out = compressed
		}
		_ = writeText(out, families, requests)
	})
}

// writeText writes families, then those of requests.
func writeText(out io.Writer, families []*dto.MetricFamily, requests Requests) error {
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(out, family); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	return requests.Stream(func(part *dto.MetricFamily, more bool) error {
		text.Reset()
		if _, err := expfmt.MetricFamilyToText(&text, part); err != nil {
			return err
		}
		lines := text.Bytes()
		// Comments say the type of a family, and must be there once.
		for more && bytes.HasPrefix(lines, []byte("#")) {
			_, lines, _ = bytes.Cut(lines, []byte("\n"))
		}
		_, err := out.Write(lines)
		return err
	})
}
