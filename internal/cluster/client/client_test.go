package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// TestRequests: each method sends the request that the API server knows.
func TestRequests(t *testing.T) {
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.String() + " " + strings.TrimSpace(string(body))
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "shop", "resourceVersion": "7"}}`))
	}))
	defer server.Close()
	clients, err := client.New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	const path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
	ctx, here, everywhere := t.Context(), clients.Ingresses("default"), clients.Ingresses("")
	shop := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	seconds := int64(9)
	for _, c := range []struct {
		want string
		send func() (any, error)
	}{
		{"GET " + path + "/shop?resourceVersion=3", func() (any, error) { return here.Get(ctx, "shop", metav1.GetOptions{ResourceVersion: "3"}) }},
		{"GET " + path + "?labelSelector=a%3Db&limit=5&timeout=9s&timeoutSeconds=9 ", func() (any, error) {
			return here.List(ctx, metav1.ListOptions{Limit: 5, LabelSelector: "a=b", TimeoutSeconds: &seconds})
		}},
		{"GET /apis/networking.k8s.io/v1/ingresses ", func() (any, error) { return everywhere.List(ctx, metav1.ListOptions{}) }},
		{"GET " + path + "?watch=true", func() (any, error) { return here.Watch(ctx, metav1.ListOptions{}) }},
		{"POST " + path + ` {"kind":"Ingress","apiVersion":"networking.k8s.io/v1","metadata":{"name":"shop"}`, func() (any, error) { return here.Create(ctx, shop, metav1.CreateOptions{}) }},
		{"PUT " + path + "/shop?dryRun=All {", func() (any, error) { return here.Update(ctx, shop, metav1.UpdateOptions{DryRun: []string{"All"}}) }},
		{"PUT " + path + "/shop/status {", func() (any, error) { return here.UpdateStatus(ctx, shop, metav1.UpdateOptions{}) }},
		{"PATCH " + path + "/shop/status?fieldManager=me [1]", func() (any, error) {
			return here.Patch(ctx, "shop", types.JSONPatchType, []byte("[1]"), metav1.PatchOptions{FieldManager: "me"}, "status")
		}},
		{"POST /apis/authentication.k8s.io/v1/tokenreviews?dryRun=All " + `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"a"}`, func() (any, error) {
			return clients.TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "a"}}, metav1.CreateOptions{DryRun: []string{"All"}})
		}},
		{"GET /api/v1/nodes/one ", func() (any, error) { return clients.Nodes().Get(ctx, "one", metav1.GetOptions{}) }},
		{"GET /api/v1/namespaces/default/secrets/one ", func() (any, error) { return clients.Secrets("default").Get(ctx, "one", metav1.GetOptions{}) }},
	} {
		got = ""
		answer, err := c.send()
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("sent %q, want %q; %v", got, c.want, err)
		}
		if ingress, ok := answer.(*networkingv1.Ingress); ok && (err != nil || ingress.ResourceVersion != "7") {
			t.Errorf("%s: got %v, %v", c.want, ingress, err)
		}
	}
	// Without a name, it would be a request for all.
	got = ""
	if _, err := here.Get(ctx, "", metav1.GetOptions{}); err == nil || got != "" {
		t.Errorf("an object without a name: %v, sent %q", err, got)
	}
}
