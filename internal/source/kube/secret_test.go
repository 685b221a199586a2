package kube_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

var other = types.NamespacedName{Namespace: "shop", Name: "other"}

func names(list ...types.NamespacedName) []types.NamespacedName { return list }

func (f *fixture) content(name string) string {
	if s, ok := f.objects[name].(*corev1.Secret); ok {
		return string(s.Data["tls.crt"])
	}
	return ""
}

// awaitContent waits until the Secret "other" has the content; empty is none.
func (f *fixture) awaitContent(about, content string) {
	f.t.Helper()
	f.await(about, func() bool { return f.content("Secret shop/other") == content })
}

func TestWantedSecret(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	a.put(secret("other", corev1.SecretTypeOpaque, "not wanted"), secret("tls", corev1.SecretTypeTLS, "y"))
	w.await("a TLS Secret's change", func() bool { return w.content("Secret shop/tls") == "y" })
	if n := a.asked("list secrets"); n != 0 {
		t.Errorf("%d lists for Secrets without a subscription", n)
	}

	missing := types.NamespacedName{Namespace: "shop", Name: "missing"}
	tls := types.NamespacedName{Namespace: "shop", Name: "tls"}
	<-w.source.SubscribeSecrets(names(other, tls, missing), nil)
	if got := w.get("Secret shop/other"); got == nil || string(got.(*corev1.Secret).Data["tls.crt"]) != "not wanted" {
		t.Errorf("what was wanted is not delivered: %v", got)
	}
	if got := a.asked("list secrets"); got != 1 {
		t.Errorf("%d lists for one Secret that is not a TLS Secret", got)
	}
	a.put(secret("other", corev1.SecretTypeOpaque, "changed"))
	w.awaitContent("a change", "changed")
	a.remove(secret("other", corev1.SecretTypeOpaque, ""))
	w.awaitContent("a deletion", "")
	a.put(secret("other", corev1.SecretTypeOpaque, "new"))
	w.awaitContent("a new one", "new")
	a.put(secret("missing", corev1.SecretTypeOpaque, "found"))
	w.await("one that was missing", func() bool { return w.content("Secret shop/missing") == "found" })

	<-w.source.SubscribeSecrets(nil, names(other, tls))
	if got := w.get("Secret shop/other"); got != nil {
		t.Error("a Secret without a subscription is still there")
	}
	if got := w.get("Secret shop/tls"); got == nil {
		t.Error("a TLS Secret is gone")
	}
	before := a.asked("list secrets")
	a.put(secret("other", corev1.SecretTypeOpaque, "not wanted"), secret("tls", corev1.SecretTypeTLS, "z"))
	w.await("a TLS Secret's change", func() bool { return w.content("Secret shop/tls") == "z" })
	if got := a.asked("list secrets"); got != before {
		t.Error("a Secret without a subscription was fetched")
	}
}

// TestSecretChangesType: a Secret that is deleted and created again with another
// type is in two watches, in either order.
func TestSecretChangesType(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	<-w.source.SubscribeSecrets(names(other), nil)
	for i := range 20 {
		kind := corev1.SecretTypeTLS
		if i%2 == 1 {
			kind = corev1.SecretTypeOpaque
		}
		old := a.snapshot().objects["secrets/shop/other"].object
		a.change(func() {
			a.store(old.DeepCopyObject().(object), "DELETED")
			a.store(secret("other", kind, fmt.Sprint(i)), "ADDED")
		})
		w.awaitContent("a Secret of another type", fmt.Sprint(i))
	}
}

// TestFetchFails: what is wanted comes once the API server gives it.
func TestFetchFails(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	a.forbid("list secrets", true)
	delivered := w.source.SubscribeSecrets(names(other), nil)
	w.await("a log line", func() bool {
		return w.logLine("verb=list resource=secrets namespace=shop", "to read a Secret that an Ingress names")
	})
	select {
	case <-delivered:
		t.Error("a Secret that could not be fetched counts as delivered")
	default:
	}
	a.forbid("list secrets", false)
	w.awaitContent("the Secret", "x")
	<-delivered
}
