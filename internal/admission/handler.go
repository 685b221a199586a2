package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/headgate/headgate/internal/admission/review"
)

// handler answers requests at any path, as ingress-nginx does.
type handler struct {
	review   Review
	reviewed func(*networkingv1.Ingress, review.Decision, error, Took)
	bodies   *semaphore.Weighted
	decoders *semaphore.Weighted
	metrics  *metrics
	log      *slog.Logger
}

// A failure is an answer without a review: API servers then do what the failurePolicy of
// the webhook's configuration says.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func fail(status int, format string, values ...any) *failure {
	return &failure{status, fmt.Errorf(format, values...)}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	answer, err := h.answer(ctx, w, r, began)
	if err != nil {
		h.metrics.reviews.WithLabelValues("error").Inc()
		h.log.Debug("an admission request failed", "error", err, "status", err.status, "from", r.RemoteAddr)
		if err.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		// What of the request was not read is not worth reading.
		w.Header().Set("Connection", "close")
		http.Error(w, err.Error(), err.status)
		return
	}
	h.metrics.reviews.WithLabelValues(resultOf(answer)).Inc()
	w.Header().Set("Content-Type", "application/json")
	// The client may have closed the connection.
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: reviewType(), Response: answer})
	h.metrics.duration.Observe(time.Since(began).Seconds())
}

func (h *handler) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, began time.Time) (*admissionv1.AdmissionResponse, *failure) {
	if r.Method != http.MethodPost {
		return nil, fail(http.StatusMethodNotAllowed, "method must be POST")
	}
	body, release, failed := h.read(w, r)
	defer release()
	if failed != nil {
		return nil, failed
	}
	request, failed := h.decode(ctx, body)
	if failed != nil {
		return nil, failed
	}
	return h.decide(ctx, request, began)
}

// read reads the body of a request. It counts against all bodies as far as it was received,
// until release is called.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), failed *failure) {
	if r.ContentLength > maxBody {
		return nil, func() {}, tooLarge()
	}
	var held int64
	release = func() { h.bodies.Release(held) }
	const piece = 32 << 10
	var buffer bytes.Buffer
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	for {
		if !h.bodies.TryAcquire(piece) {
			return nil, release, fail(http.StatusServiceUnavailable, "too many large requests at the same time")
		}
		held += piece
		_, err := io.CopyN(&buffer, limited, piece)
		if errors.Is(err, io.EOF) {
			return buffer.Bytes(), release, nil
		}
		if _, is := errors.AsType[*http.MaxBytesError](err); is {
			return nil, release, tooLarge()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, release, fail(http.StatusRequestTimeout, "the request took longer than %v", readTimeout)
		}
		if err != nil {
			return nil, release, fail(http.StatusBadRequest, "read the request: %w", err)
		}
	}
}

func tooLarge() *failure {
	return fail(http.StatusRequestEntityTooLarge, "the request must have at most %d bytes", maxBody)
}

// decode decodes an AdmissionReview up to its objects.
func (h *handler) decode(ctx context.Context, body []byte) (*admissionv1.AdmissionRequest, *failure) {
	leave, failed := h.decoder(ctx)
	if failed != nil {
		return nil, failed
	}
	defer leave()
	var asked admissionv1.AdmissionReview
	if err := kjson.Unmarshal(body, &asked); err != nil {
		return nil, fail(http.StatusBadRequest, "decode the AdmissionReview: %w", err)
	}
	if asked.TypeMeta != reviewType() {
		return nil, fail(http.StatusBadRequest, "must be an AdmissionReview of admission.k8s.io/v1, not %q of %q", asked.Kind, asked.APIVersion)
	}
	if asked.Request == nil || asked.Request.UID == "" {
		return nil, fail(http.StatusBadRequest, "the AdmissionReview must have a request with a uid")
	}
	return asked.Request, nil
}

// decoder waits until a request may be decoded.
func (h *handler) decoder(ctx context.Context) (leave func(), failed *failure) {
	if err := h.decoders.Acquire(ctx, 1); err != nil {
		return nil, fail(http.StatusServiceUnavailable, "too many requests at the same time: %w", err)
	}
	return func() { h.decoders.Release(1) }, nil
}

// metrics are those of the webhook.
type metrics struct {
	reviews  *prometheus.CounterVec
	duration prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headgate_admission_reviews_total",
			Help: "Number of requests to the admission webhook, by result: allowed, warned (allowed with warnings), refused or error.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "headgate_admission_duration_seconds",
			Help:    "Time that the admission webhook took to answer a review.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}),
	}
	for _, result := range []string{"allowed", "warned", "refused", "error"} {
		m.reviews.WithLabelValues(result)
	}
	registry.MustRegister(m.reviews, m.duration)
	return m
}

func resultOf(answer *admissionv1.AdmissionResponse) string {
	switch {
	case !answer.Allowed:
		return "refused"
	case len(answer.Warnings) > 0:
		return "warned"
	}
	return "allowed"
}
