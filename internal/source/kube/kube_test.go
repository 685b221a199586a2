package kube_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/kube"
)

// A fixture is what a source has delivered.
type fixture struct {
	t      *testing.T
	source *kube.Source
	stop   func() error

	mu      sync.Mutex
	objects map[string]metav1.Object
	batches [][]source.Change
	changed chan struct{}
	// hold makes deliver wait while it is locked.
	hold sync.Mutex
	log  bytes.Buffer
}

func nameOf(o metav1.Object) string {
	return fmt.Sprintf("%s %s/%s", reflect.TypeOf(o).Elem().Name(), o.GetNamespace(), o.GetName())
}

func (f *fixture) deliver(_ context.Context, changes []source.Change) {
	f.hold.Lock()
	defer f.hold.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches = append(f.batches, changes)
	for _, c := range changes {
		if c.Deleted {
			delete(f.objects, nameOf(c.Object))
		} else {
			f.objects[nameOf(c.Object)] = c.Object
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// Write takes a line of the log.
func (f *fixture) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { close(f.changed); f.changed = make(chan struct{}) }()
	return f.log.Write(line)
}

// start makes a source and runs it until the test ends.
func start(t *testing.T, a *apiServer, edit func(*kube.Settings)) *fixture {
	t.Helper()
	w := newFixture(t, a, edit)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.source.Run(ctx, w.deliver) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { w.stop() })
	return w
}

func newFixture(t *testing.T, a *apiServer, edit func(*kube.Settings)) *fixture {
	t.Helper()
	clients, err := kube.Connect(kube.Connection{Host: a.url(), QPS: 1000, Burst: 1000, UserAgent: "headgate/test"})
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, objects: map[string]metav1.Object{}, changed: make(chan struct{})}
	settings := kube.Settings{
		Clients: clients, AnnotationPrefix: "nginx.ingress.kubernetes.io",
		ConfigMap: types.NamespacedName{Namespace: "headgate", Name: "options"},
		Log:       slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if edit != nil {
		edit(&settings)
	}
	w.source = kube.New(settings)
	return w
}

const timeout = time.Minute

// await waits until what was delivered or logged is as wanted.
func (f *fixture) await(about string, wanted func() bool) {
	f.t.Helper()
	deadline := time.After(timeout)
	for {
		f.mu.Lock()
		ok, changed := wanted(), f.changed
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.t.Fatalf("never came: %s\nobjects: %v\nlog:\n%s", about, f.names(), f.log.String())
		}
	}
}

func (f *fixture) names() []string {
	var names []string
	for name := range f.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// awaitNames waits until exactly these objects are there.
func (f *fixture) awaitNames(names ...string) {
	f.t.Helper()
	slices.Sort(names)
	f.await("the objects "+strings.Join(names, ", "), func() bool { return len(f.batches) > 0 && slices.Equal(f.names(), names) })
}

func (f *fixture) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

func (f *fixture) logged(text string) int { return strings.Count(f.text(), text) }

func (f *fixture) get(name string) metav1.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[name]
}

// delivered lists all changes from the batch of that number on.
func (f *fixture) delivered(from int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, batch := range f.batches[from:] {
		for _, c := range batch {
			text := nameOf(c.Object)
			if c.Deleted {
				text = "-" + text
			}
			list = append(list, text)
		}
	}
	slices.Sort(list)
	return list
}

func (f *fixture) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.batches)
}

func ingress(name, class, service string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{
			Host: name + ".example",
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}},
				}}},
			}},
		}}},
	}
}

func ingressClass(name string) *networkingv1.IngressClass {
	return &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-" + name},
	}
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func slice(service string, addresses ...string) *discoveryv1.EndpointSlice {
	port := int32(8080)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		Ports: []discoveryv1.EndpointPort{{Port: &port}},
	}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return s
}

func secret(name string, kind corev1.SecretType, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: kind, Data: map[string][]byte{"tls.crt": []byte(content)},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: name}, Data: map[string]string{"hsts": "false"}}
}

func fill(a *apiServer) {
	a.put(
		ingress("web", "nginx", "one"), ingressClass("nginx"), service("one"), slice("one", "127.0.0.1"),
		secret("tls", corev1.SecretTypeTLS, "x"), secret("other", corev1.SecretTypeOpaque, "x"),
		configMap("options"), configMap("foreign"),
	)
}

var filled = []string{
	"Ingress shop/web", "IngressClass /nginx", "Service shop/one", "EndpointSlice shop/one-1", "Secret shop/tls", "ConfigMap headgate/options",
}

// logLine reports whether the log has all texts. It must be called by await.
func (f *fixture) logLine(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(f.log.String(), text) })
}
