package clustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where no pod can run, a shared cluster runs without them, and the tests that
// need them fail with the reason.
func TestSharedWherePodsCannotRun(t *testing.T) {
	// This program is found before the machine's containerd, and fails.
	dir := t.TempDir()
	containerd := "#!/bin/sh\necho 'error: no container runs on this machine' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "containerd"), []byte(containerd), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var podless Shared
	c := podless.Start(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	const reason = "no container runs on this machine"
	if said := fatal(t, c.NeedPods); !strings.Contains(said, reason) {
		t.Errorf("a test that needs pods ends with %q, want %q in it", said, reason)
	}
	err := c.CreateBackend(t.Context(), BackendDeployment("default", "web", 1, 0))
	if err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("creating a backend: %v, want %q in it", err, reason)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
	maps := c.Client().CoreV1().ConfigMaps(c.Namespace(t))
	if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Errorf("a test that needs no pods: %v", err)
	}
}

func TestNeedPodsWherePodsRun(t *testing.T) {
	if said := fatal(t, new(Cluster).NeedPods); said != "" {
		t.Errorf("it ends the test: %s", said)
	}
}

// A recorder keeps what ends a test.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fatal returns what the function ends a test with, nothing if it does not.
func fatal(t *testing.T, do func(testing.TB)) string {
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(r)
	}()
	<-ended
	return r.said
}
