package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	dashboardPort = 9000
	webhookPort   = 8443
	// usesEach is how often each use is measured.
	usesEach = 5
)

// A use is something that people, Prometheus or the API server ask a running controller.
type use struct {
	name  string
	ask   func(context.Context) (bytes int, err error)
	times []float64
	bytes int
}

func (u use) String() string {
	return fmt.Sprintf("%.0f ms, %s", medianOf(u.times), kibibytes(u.bytes))
}

func kibibytes(n int) string { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }

// measureUses measures all of them, in a Headgate that offers them.
func (k *kube) measureUses(ctx context.Context) ([]use, error) {
	arguments, err := k.useArguments()
	if err != nil {
		return nil, err
	}
	h, err := k.startHeadgate(ctx, arguments...)
	if err != nil {
		return nil, err
	}
	defer h.process.stop()
	// Each host has counts in /metrics then.
	if err := h.touchAll(ctx, k.created); err != nil {
		return nil, err
	}
	uses := k.uses(h)
	for range usesEach {
		for i := range uses {
			begin := time.Now()
			if uses[i].bytes, err = uses[i].ask(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", uses[i].name, err)
			}
			uses[i].times = append(uses[i].times, milliseconds(time.Since(begin)))
		}
	}
	return uses, nil
}

// useArguments are those of a Headgate that offers all uses.
func (k *kube) useArguments() ([]string, error) {
	pair, err := newCertificate("webhook")
	if err != nil {
		return nil, err
	}
	certificate, key := filepath.Join(k.stage.dir, "webhook.crt"), filepath.Join(k.stage.dir, "webhook.key")
	for file, text := range map[string][]byte{certificate: pair.chain, key: pair.key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{
		"--dashboard-address", strconv.Itoa(dashboardPort), "--enable-metrics",
		"--validating-webhook", ":" + strconv.Itoa(webhookPort), "--validating-webhook-certificate", certificate, "--validating-webhook-key", key,
	}, nil
}

func (k *kube) uses(h *headgate) []use {
	middle := hostName(k.created / 2)
	program := func(arguments ...string) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			out, err := exec.CommandContext(ctx, k.stage.headgate, append(arguments, "--run-dir", h.runDir)...).Output()
			return len(out), err
		}
	}
	client := &http.Client{Transport: &http.Transport{DialContext: k.Dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	page := func(path string) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			return readAll(ctx, client, http.MethodGet, "http://"+local(dashboardPort)+"/v1/"+path, nil)
		}
	}
	return []use{
		{name: "explain", ask: program("explain", "http://"+middle+"/")},
		{name: "dbg hosts list", ask: program("dbg", "hosts", "list")},
		{name: "dbg hosts get HOST", ask: program("dbg", "hosts", "get", middle)},
		{name: "dbg backends list", ask: program("dbg", "backends", "list")},
		{name: "dbg backends all", ask: program("dbg", "backends", "all")},
		{name: "page: status", ask: page("status")},
		{name: "page: hosts", ask: page("hosts")},
		{name: "page: hosts that have a text", ask: page("hosts?q=" + middle)},
		{name: "page: hosts with problems", ask: page("hosts?problems=true")},
		{name: "page: backends", ask: page("backends")},
		{name: "page: certificates", ask: page("certificates")},
		{name: "page: findings", ask: page("findings?limit=50")},
		{name: "page: rates", ask: page("rates")},
		// As text, 100,000 series take ten times as long: see measureSeries.
		{name: "/metrics, protobuf, gzip", ask: func(ctx context.Context) (int, error) {
			return readAll(ctx, client, http.MethodGet, "http://"+local(h.health)+"/metrics", nil, "Accept", acceptProtobuf, "Accept-Encoding", "gzip")
		}},
		{name: "webhook, a new Ingress", ask: func(ctx context.Context) (int, error) {
			review, err := k.review()
			if err != nil {
				return 0, err
			}
			return readAll(ctx, client, http.MethodPost, "https://"+local(webhookPort)+"/networking/v1/ingresses", review, "Content-Type", "application/json")
		}},
	}
}

// readAll returns the length of the body. headers: names and values by turns
func readAll(ctx context.Context, client *http.Client, method, url string, body []byte, headers ...string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", response.StatusCode, text)
	}
	return len(text), err
}

// review is what the API server asks about a new Ingress.
func (k *kube) review() ([]byte, error) {
	ing := k.ingress("reviewed", "reviewed.example.com", 0, "")
	ing.TypeMeta = metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress"}
	object, err := json.Marshal(ing)
	if err != nil {
		return nil, err
	}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID("bench"), Operation: admissionv1.Create, Namespace: ing.Namespace, Name: ing.Name,
			Kind:     metav1.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
			Resource: metav1.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
			Object:   runtime.RawExtension{Raw: object},
		},
	})
}
