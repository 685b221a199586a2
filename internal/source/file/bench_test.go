package file

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/source"
)

// ingress is a manifest of 1 KB.
func ingress(i int) string {
	return fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: ingress-%[1]d
  namespace: default
  labels:
    app.kubernetes.io/name: shop
    app.kubernetes.io/part-of: everything
  annotations:
    nginx.ingress.kubernetes.io/ssl-redirect: "false"
    nginx.ingress.kubernetes.io/proxy-read-timeout: "60"
    nginx.ingress.kubernetes.io/proxy-body-size: 8m
spec:
  ingressClassName: nginx
  tls:
  - hosts: ["host-%[1]d.example.com"]
    secretName: certificate
  rules:
  - host: host-%[1]d.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service:
            name: web
            port:
              number: 80
      - path: /api
        pathType: Prefix
        backend:
          service:
            name: api
            port:
              name: http
`, i)
}

func BenchmarkStart(b *testing.B) {
	const n = 10_000
	many, one := b.TempDir(), b.TempDir()
	var all bytes.Buffer
	for i := range n {
		text := ingress(i)
		all.WriteString("---\n" + text)
		if err := os.WriteFile(filepath.Join(many, fmt.Sprintf("%d.yaml", i)), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(one, "all.yaml"), all.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("files", func(b *testing.B) { benchmarkStart(b, many, n) })
	b.Run("documents", func(b *testing.B) { benchmarkStart(b, one, n) })
}

func benchmarkStart(b *testing.B, folder string, want int) {
	for b.Loop() {
		f, err := New(folder, func(p map[string][]Problem) { b.Error(p) })
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		if err := f.Run(ctx, func(_ context.Context, changes []source.Change) {
			if len(changes) != want {
				b.Errorf("%d objects, want %d", len(changes), want)
			}
			cancel()
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRename measures the time from a rename into a folder of 10,000
// files to the delivery.
func BenchmarkRename(b *testing.B) {
	const n = 10_000
	folder := b.TempDir()
	for i := range n {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.yaml", i)), []byte(ingress(i)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	f, err := New(folder, func(p map[string][]Problem) { b.Error(p) })
	if err != nil {
		b.Fatal(err)
	}
	delivered := make(chan []source.Change)
	go f.Run(b.Context(), func(ctx context.Context, changes []source.Change) {
		select {
		case delivered <- changes:
		case <-ctx.Done():
		}
	})
	<-delivered
	temporary := filepath.Join(folder, ".new")
	var slowest time.Duration
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		if err := os.WriteFile(temporary, []byte(ingress(n+i)), 0o600); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		start := time.Now()
		if err := os.Rename(temporary, filepath.Join(folder, fmt.Sprintf("%d.yaml", n+i))); err != nil {
			b.Fatal(err)
		}
		if got := <-delivered; len(got) != 1 {
			b.Fatalf("%d changes", len(got))
		}
		slowest = max(slowest, time.Since(start))
	}
	b.ReportMetric(float64(slowest.Microseconds()), "max-µs")
}
