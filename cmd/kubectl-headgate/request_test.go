package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const onePod = `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: edge}
spec: {containers: [{name: controller}]}`

// requestsOf returns the requests of a call.
func requestsOf(t *testing.T, args ...string) []*http.Request {
	t.Helper()
	cluster := &fakeCluster{objects: readObjects(t, []byte(onePod)), log: "a line\n"}
	output := call(append([]string{"kubectl-headgate"}, args...), cluster.start(t), nil)
	if !strings.HasSuffix(output, "status 0\n") {
		t.Fatalf("%v: %s", args, output)
	}
	return cluster.requests
}

// Flags of logs become parameters of the request.
func TestLogParameters(t *testing.T) {
	for _, c := range []struct{ args, query string }{
		{"", "container=controller"},
		{"-f --timestamps -p", "container=controller&follow=true&previous=true&timestamps=true"},
		{"--tail 0 --limit-bytes 10", "container=controller&limitBytes=10&tailLines=0"},
		{"--tail -1 --limit-bytes 0 --since 0s", "container=controller"},
		{"--since 1500ms", "container=controller&sinceSeconds=2"},
		{"--since-time 2026-01-02T03:04:05+01:00", "container=controller&sinceTime=2026-01-02T02:04:05Z"},
	} {
		requests := requestsOf(t, append([]string{"logs", "-n", "edge", "--pod", "p"}, strings.Fields(c.args)...)...)
		last := requests[len(requests)-1].URL
		want, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		if last.Path != "/api/v1/namespaces/edge/pods/p/log" {
			t.Errorf("%s: the last request is %v", c.args, last)
		}
		if diff := cmp.Diff(want, last.Query()); diff != "" {
			t.Errorf("%s: %s", c.args, diff)
		}
	}
}

// Flags of kubectl work as in kubectl.
func TestConfigFlags(t *testing.T) {
	r := requestsOf(t, "ingresses", "-n", "edge", "--as", "jane", "--as-group", "dev", "--token", "other")[0]
	if r.URL.Path != "/apis/networking.k8s.io/v1/namespaces/edge/ingresses" {
		t.Errorf("the request is %v", r.URL)
	}
	for name, want := range map[string]string{
		"Impersonate-User": "jane", "Impersonate-Group": "dev", "Authorization": "Bearer other", "User-Agent": "kubectl-headgate/" + version,
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
