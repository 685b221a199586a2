package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/headgate/headgate/internal/cluster/client"
)

// TestRateIsOfAll: the limit of requests is one for the resources of all groups.
func TestRateIsOfAll(t *testing.T) {
	requests := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.URL.Path]++
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind": "IngressClass", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "nginx"}}`))
	}))
	defer server.Close()
	// One request, and the next one after a thousand seconds.
	clients, err := client.New(&rest.Config{Host: server.URL, QPS: 0.001, Burst: 1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	class, err := clients.IngressClasses().Get(t.Context(), "nginx", metav1.GetOptions{})
	if err != nil || class.Name != "nginx" || requests["/apis/networking.k8s.io/v1/ingressclasses/nginx"] != 1 {
		t.Fatalf("got %v, %v by %v", class, err, requests)
	}
	// A request that would wait for longer than its context lives fails at once.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := clients.Nodes().Get(ctx, "one", metav1.GetOptions{}); err == nil || len(requests) != 1 {
		t.Errorf("a client of another group has a limit of its own: %v, %v", err, requests)
	}
	if _, err := client.New(&rest.Config{Host: server.URL, QPS: 1}, server.Client()); err == nil {
		t.Error("takes a rate without a burst")
	}
}
