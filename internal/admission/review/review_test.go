package review_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// ingress is one of class nginx, with paths of a host.
func ingress(namespace, name string, age int, host string, paths ...string) *networkingv1.Ingress {
	class, kind := "nginx", networkingv1.PathTypePrefix
	rule := networkingv1.HTTPIngressRuleValue{}
	for _, path := range paths {
		rule.Paths = append(rule.Paths, networkingv1.HTTPIngressPath{
			Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
			},
		})
	}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{},
			CreationTimestamp: metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(age) * time.Hour)),
		},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{
			{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &rule}},
		}},
	}
}

func decide(t *testing.T, r *review.Reviewer, ing *networkingv1.Ingress) review.Decision {
	t.Helper()
	d, err := r.Review(t.Context(), ing)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPushingOthersOut reviews Ingresses of a host that is full.
func TestPushingOthersOut(t *testing.T) {
	paths := make([]string, model.MaxHostRoutes)
	for i := range paths {
		paths[i] = fmt.Sprintf("/%d", i)
	}
	full := ingress("a", "full", 5, "h.test", paths...)
	r := reviewer(t, settings(), full)
	for _, c := range []struct {
		ing *networkingv1.Ingress
		of  string
	}{
		{ingress("b", "older", 6, "h.test", "/x"), "ingress/a/full"},
		{ingress("b", "younger", 4, "h.test", "/x"), "spec.rules[0]"},
		{ingress("b", "elsewhere", 6, "i.test", "/x"), ""},
	} {
		d := decide(t, r, c.ing)
		if d.Allowed() != (c.of == "") || !strings.HasPrefix(d.Message(), c.of) {
			t.Errorf("%s: refused because of %q: want %q", c.ing.Name, d.Message(), c.of)
		}
	}
	// Another change is not refused because of what was so before.
	r = reviewer(t, settings(), full, ingress("b", "late", 4, "h.test", "/x"))
	changed := full.DeepCopy()
	changed.Annotations[prefix+"/proxy-read-timeout"] = "5"
	if d := decide(t, r, changed); !d.Allowed() {
		t.Errorf("refused: %s", d.Message())
	}
}

// TestNotLoaded must not let anything in before there is something to compare it with.
func TestNotLoaded(t *testing.T) {
	r := review.New(settings())
	if _, err := r.Review(t.Context(), ingress("a", "a", 1, "h.test", "/")); !errors.Is(err, review.ErrNotLoaded) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	r.Put()
	for {
		if _, err := r.Review(t.Context(), ingress("a", "a", 1, "h.test", "/")); err == nil {
			break
		}
		runtime.Gosched()
	}
	cancel()
	<-ended
}

// TestTurns holds the turn of one namespace: others are not held up, and who waits for it
// waits no longer than its context.
func TestTurns(t *testing.T) {
	r := reviewer(t, settings())
	release := review.HoldTurn(r, "a")
	decide(t, r, ingress("b", "b", 1, "h.test", "/"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Review(ctx, ingress("a", "a", 1, "h.test", "/")); !errors.Is(err, context.Canceled) {
		t.Errorf("with the turn taken: %v", err)
	}
	release()
	decide(t, r, ingress("a", "a", 1, "h.test", "/"))
}

// TestSentences has control characters and many findings.
func TestSentences(t *testing.T) {
	var d review.Decision
	for i := range 15 {
		f := finding.Finding{Field: fmt.Sprintf("f%02d", i), Message: "a\nb\x7f\xff", Effect: "c\r"}
		d.Refused, d.Warned = append(d.Refused, f), append(d.Warned, f)
	}
	if got := d.Message(); !strings.HasPrefix(got, "f00: a b �; f01: a b �; ") || !strings.HasSuffix(got, "; … and 5 more") {
		t.Errorf("message %q", got)
	}
	if got := d.Warnings(); len(got) != 11 || got[0] != "f00: a b �; c " || got[10] != "… and 5 more" {
		t.Errorf("warnings %q", got)
	}
}

// TestUnknownCode is refused: a new code must have a rule.
func TestUnknownCode(t *testing.T) {
	if v := review.VerdictOf(finding.Finding{Code: "New"}, prefix); v != review.Refuse {
		t.Errorf("got %s", v)
	}
}
