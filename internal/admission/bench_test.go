package admission_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/admission"
	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/test/pkitest"
)

const (
	ingresses = 10_000
	clients   = 50
	changes   = 100 // a second
)

// BenchmarkReviews measures the time of a request among 10,000 Ingresses, by 50 clients,
// while 100 objects a second change: with pauses, and as fast as the machine can.
func BenchmarkReviews(b *testing.B) {
	url, reviewer := startReviews(b)
	stop, changed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(changed)
		for i := 0; ; i++ {
			select {
			case <-time.After(time.Second / changes):
				ing := ingressNumber(i % ingresses)
				ing.Annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"] = fmt.Sprint(1 + i%50)
				reviewer.Put(source.Change{Object: ing}, source.Change{Object: sliceNumber(i%ingresses, byte(i))})
			case <-stop:
				return
			}
		}
	}()
	b.Run("paced", func(b *testing.B) { load(b, url, 100*time.Millisecond) })
	b.Run("saturated", func(b *testing.B) { load(b, url, 0) })
	close(stop)
	<-changed
}

func startReviews(b *testing.B) (url string, reviewer *review.Reviewer) {
	b.Helper()
	s := review.Settings{Features: all.Features(), AnnotationPrefix: "nginx.ingress.kubernetes.io"}
	s.Store.WatchWithoutClass = true
	reviewer = review.New(s)
	var objects []source.Change
	for i := range ingresses {
		service := &corev1.Service{ObjectMeta: ingressNumber(i).ObjectMeta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		objects = append(objects, source.Change{Object: ingressNumber(i)}, source.Change{Object: service}, source.Change{Object: sliceNumber(i, 1)})
	}
	reviewer.Put(objects...)
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	go reviewer.Run(ctx)
	dir, pair := b.TempDir(), pkitest.New(b).Issue("webhook.test")
	for name, text := range map[string]string{"cert": pair.Certificate, "key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	server, err := admission.Listen(admission.Settings{
		Address: "127.0.0.1:0", CertificateFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"),
		Review: reviewer.Review, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	go server.Serve()
	b.Cleanup(func() { server.Close(ctx) })
	for {
		if _, err := reviewer.Review(ctx, ingressNumber(0)); err == nil {
			return "https://" + server.Address().String(), reviewer
		}
		time.Sleep(time.Millisecond)
	}
}

// load has all clients send b.N requests together.
func load(b *testing.B, url string, pause time.Duration) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: clients,
	}}
	defer client.CloseIdleConnections()
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex
		times []time.Duration
	)
	began := time.Now()
	for c := range clients {
		wait.Go(func() {
			time.Sleep(pause * time.Duration(c) / clients)
			// The first request of each client has a handshake, and is not counted.
			for i := c - clients; i < b.N; i += clients {
				body := reviewNumber((i + clients) % ingresses)
				sent := time.Now()
				response, err := client.Post(url, "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				text, _ := io.ReadAll(response.Body)
				response.Body.Close()
				took := time.Since(sent)
				if !bytes.Contains(text, []byte(`"allowed":true`)) {
					b.Errorf("%s", text)
				}
				mu.Lock()
				if i >= 0 {
					times = append(times, took)
				}
				mu.Unlock()
				time.Sleep(pause)
			}
		})
	}
	wait.Wait()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(len(times))/time.Since(began).Seconds(), "reviews/s")
}

func reviewNumber(i int) []byte {
	ing := ingressNumber(i)
	ing.Annotations["nginx.ingress.kubernetes.io/proxy-body-size"] = "8m"
	object, err := json.Marshal(ing)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE",`+
		`"kind":{"group":"networking.k8s.io","version":"v1","kind":"Ingress"},"namespace":%q,"name":"web","object":%s,"oldObject":%s}}`, ing.Namespace, object, object)
}

func meta(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: fmt.Sprintf("team-%d", i), Name: "web", CreationTimestamp: metav1.Unix(1e9, 0),
		Annotations: map[string]string{"nginx.ingress.kubernetes.io/ssl-redirect": "false", "nginx.ingress.kubernetes.io/proxy-read-timeout": "60"},
	}
}

func ingressNumber(i int) *networkingv1.Ingress {
	kind := networkingv1.PathTypePrefix
	var paths []networkingv1.HTTPIngressPath
	for _, path := range []string{"/", "/api", "/static"} {
		paths = append(paths, networkingv1.HTTPIngressPath{Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}})
	}
	return &networkingv1.Ingress{ObjectMeta: meta(i), Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
		Host: fmt.Sprintf("h%d.example.com", i), IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}},
	}}}}
}

func sliceNumber(i int, last byte) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta(i), Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.0.0.%d", last)}}}}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	return slice
}
