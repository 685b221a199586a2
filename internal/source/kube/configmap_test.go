package kube_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/source/kube"
)

var (
	headers        = types.NamespacedName{Namespace: "shop", Name: "headers"}
	missingHeaders = types.NamespacedName{Namespace: "shop", Name: "missing"}
)

func headerMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"X-Value": value}}
}

// awaitValue waits until the ConfigMap has the value; empty is none.
func (f *fixture) awaitValue(name, value string) {
	f.t.Helper()
	f.await(fmt.Sprintf("value %q of ConfigMap %s", value, name), func() bool { return f.value(name) == value })
}

func (f *fixture) value(name string) string {
	if c, ok := f.objects["ConfigMap shop/"+name].(*corev1.ConfigMap); ok {
		return c.Data["X-Value"]
	}
	return ""
}

// awaitClosed waits until what was wanted counts as delivered.
func (f *fixture) awaitClosed(delivered <-chan struct{}) {
	f.t.Helper()
	select {
	case <-delivered:
	case <-time.After(timeout):
		f.t.Fatalf("what was wanted never counted as delivered; log:\n%s", f.text())
	}
}

func TestWantedConfigMap(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.put(headerMap("headers", "one"), headerMap("foreign", "x"))
	w := start(t, a, nil)
	w.awaitNames(filled...)
	w.awaitClosed(w.source.SubscribeConfigMaps(names(headers, missingHeaders, options), nil))
	if got := w.get("ConfigMap shop/headers"); got == nil || got.(*corev1.ConfigMap).Data["X-Value"] != "one" {
		t.Errorf("what was wanted is not delivered: %v", got)
	}
	if got := a.asked("list configmaps"); got != 1 {
		t.Errorf("%d lists for one ConfigMap", got)
	}
	a.put(headerMap("headers", "two"))
	w.awaitValue("headers", "two")
	a.remove(headerMap("headers", ""))
	w.awaitValue("headers", "")
	a.put(headerMap("headers", "three"), headerMap("missing", "found"))
	w.awaitValue("headers", "three")
	w.awaitValue("missing", "found")

	w.awaitClosed(w.source.SubscribeConfigMaps(nil, names(headers, options)))
	want := append([]string{"ConfigMap shop/missing"}, filled...)
	w.awaitNames(want...)
	before := a.asked("list configmaps")
	a.put(headerMap("headers", "four"), headerMap("foreign", "y"), headerMap("missing", "again"))
	w.awaitValue("missing", "again")
	w.awaitNames(want...)
	if got := a.asked("list configmaps") - before; got != 1 {
		t.Errorf("%d lists for a change of one ConfigMap that is wanted, and of others", got)
	}
}

// TestConfigMapsNotWanted: none is asked for but the one that is followed, also
// if it is the only one with a reference.
func TestConfigMapsNotWanted(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	w.awaitClosed(w.source.SubscribeConfigMaps(names(options), nil))
	w.awaitClosed(w.source.SubscribeConfigMaps(nil, names(options)))
	// Long enough for a request to be sent.
	w.awaitClosed(w.source.SubscribeSecrets(names(other), nil))
	for i := range 20 {
		a.put(secret("other", corev1.SecretTypeOpaque, fmt.Sprint(i)))
		w.awaitContent("a Secret", fmt.Sprint(i))
	}
	if got := a.asked("watch configmaps") + a.asked("list configmaps"); got != 1 {
		t.Errorf("%d requests for ConfigMaps, want one for the one that is followed", got)
	}
}

// TestOptionsWanted: the ConfigMap that is followed is delivered by its own watch
// alone, also while an Ingress refers to it.
func TestOptionsWanted(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.put(headerMap("headers", "one"))
	w := start(t, a, nil)
	w.awaitNames(filled...)
	w.awaitClosed(w.source.SubscribeConfigMaps(names(headers, options), nil))
	from := w.count()
	changed := configMap("options")
	changed.Data["hsts"] = "true"
	a.put(changed, headerMap("headers", "two"))
	w.awaitValue("headers", "two")
	w.await("the options", func() bool {
		return w.objects["ConfigMap headgate/options"].(*corev1.ConfigMap).Data["hsts"] == "true"
	})
	w.awaitClosed(w.source.SubscribeConfigMaps(nil, names(headers, options)))
	w.awaitNames(filled...)
	if got := fmt.Sprint(w.delivered(from)); got != "[-ConfigMap shop/headers ConfigMap headgate/options ConfigMap shop/headers]" {
		t.Errorf("delivered were %s", got)
	}
}

// TestConfigMapsForbidden: what is missing is named, nothing waits for it, and
// what is wanted comes when it may.
func TestConfigMapsForbidden(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.put(headerMap("headers", "one"))
	w := start(t, a, nil)
	w.awaitNames(filled...)
	a.forbid("list configmaps", true)
	a.forbid("watch configmaps", true)
	w.awaitClosed(w.source.SubscribeConfigMaps(names(headers), nil))
	for _, verb := range []string{"list", "watch"} {
		w.await("a log line", func() bool {
			return w.logLine(`a permission is missing" verb=` + verb + ` resource=configmaps namespace=all` +
				` needed="to know the ConfigMaps that Ingresses and keys name, and when they change" without="ConfigMaps that Ingresses and keys name count as missing"`)
		})
	}
	w.awaitClosed(w.source.SubscribeConfigMaps(names(missingHeaders), nil))
	w.awaitNames(filled...)
	a.forbid("list configmaps", false)
	a.forbid("watch configmaps", false)
	w.awaitValue("headers", "one")
	a.put(headerMap("missing", "found"))
	w.awaitValue("missing", "found")
}

// TestConfigMapsAwait: while the metadata is not listed, nothing counts as
// delivered.
func TestConfigMapsAwait(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.put(headerMap("headers", "one"))
	w := start(t, a, nil)
	w.awaitNames(filled...)
	a.down()
	all, missing := w.source.SubscribeConfigMaps(names(headers, missingHeaders), nil), w.source.SubscribeConfigMaps(names(missingHeaders), nil)
	w.await("a failed try", func() bool { return w.logLine(`watch ended" resource=configmaps needed="to know the ConfigMaps`) })
	for _, delivered := range []<-chan struct{}{all, missing} {
		select {
		case <-delivered:
			t.Error("a ConfigMap that was not looked up counts as delivered")
		default:
		}
	}
	a.up()
	w.awaitClosed(missing)
	w.awaitClosed(all)
	if w.get("ConfigMap shop/headers") == nil {
		t.Error("what was wanted counts as delivered before it was")
	}
}

// TestConfigMapsOfNamespace: no other namespace is asked about.
func TestConfigMapsOfNamespace(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	namespace := &corev1.Namespace{}
	namespace.Name = "shop"
	a.put(namespace, headerMap("headers", "one"))
	w := start(t, a, func(s *kube.Settings) { s.Namespace = "shop" })
	w.awaitNames(filled...)
	w.awaitClosed(w.source.SubscribeConfigMaps(names(headers, types.NamespacedName{Namespace: "headgate", Name: "foreign"}), nil))
	w.awaitNames(append([]string{"ConfigMap shop/headers"}, filled...)...)
	followed := a.asked("watch configmaps headgate metadata.name=options")
	if all, shop := a.asked("watch configmaps"), a.asked("watch configmaps shop"); followed != 1 || shop != 1 || all != 2 {
		t.Errorf("%d watches of ConfigMaps, %d of them of the namespace and %d of the options", all, shop, followed)
	}
	if all, shop := a.asked("list configmaps"), a.asked("list configmaps shop metadata.name=headers"); all != 1 || shop != 1 {
		t.Errorf("%d lists of ConfigMaps, %d of them of the one that is wanted", all, shop)
	}
}

// TestForeignConfigMapsCostNothing: among many, one is wanted.
func TestForeignConfigMapsCostNothing(t *testing.T) {
	const many, written = 10000, 1000
	a := newAPIServer(t)
	fill(a)
	var foreign []object
	for i := range many {
		foreign = append(foreign, headerMap(fmt.Sprintf("foreign-%d", i), "x"))
	}
	a.put(append(foreign, headerMap("headers", "one"))...)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	requests, from := a.asked(""), w.count()
	w.awaitClosed(w.source.SubscribeConfigMaps(names(headers), nil))
	var writes []object
	for i := range written {
		writes = append(writes, headerMap(fmt.Sprintf("foreign-%d", i), "y"))
	}
	a.put(append(writes, headerMap("headers", "two"))...)
	w.awaitValue("headers", "two")
	if got := w.delivered(from); !slices.Equal(got, []string{"ConfigMap shop/headers", "ConfigMap shop/headers"}) {
		t.Errorf("delivered were %.200s", fmt.Sprint(got))
	}
	if got := a.asked("") - requests; got != 3 {
		t.Errorf("%d requests, want one to follow all, and two lists of the one that is wanted", got)
	}
}
