package review_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

// fakeTester rejects what has "wrong", can't test what has "later", and counts tries.
type fakeTester struct {
	results map[string]error
	tries   int
	// during is called in a try.
	during func()
}

func text(t feature.Trial) string {
	_, location := t.Lines("")
	all := strings.Join(location, "\n")
	for _, file := range t.Files {
		all += string(file.Bytes)
	}
	return all
}

func (f *fakeTester) Tried(t feature.Trial) (error, bool) { //nolint:revive,staticcheck // As the interface says.
	err, known := f.results[text(t)]
	return err, known
}

func (f *fakeTester) Try(_ context.Context, t feature.Trial) error {
	f.tries++
	if f.during != nil {
		f.during()
	}
	all := text(t)
	switch {
	case strings.Contains(all, "later"):
		return &feature.UntestedError{Err: errors.New("no space left")}
	case strings.Contains(all, "wrong"):
		f.results[all] = errors.New("NGINX rejects the configuration")
	default:
		f.results[all] = nil
	}
	return f.results[all]
}

func snippetIngress(namespace, word string, hosts ...string) *networkingv1.Ingress {
	ing := ingress(namespace, "a", 1, hosts[0], "/")
	for _, host := range hosts[1:] {
		ing.Spec.Rules = append(ing.Spec.Rules, ingress(namespace, "a", 1, host, "/").Spec.Rules...)
	}
	ing.Annotations = map[string]string{
		prefix + "/enable-modsecurity":  "true",
		prefix + "/modsecurity-snippet": "SecAction \"id:1,pass,msg:'" + word + "'\"",
	}
	return ing
}

// TestReviewTrials: reviews have directives tested once, and while nothing is locked.
func TestReviewTrials(t *testing.T) {
	tester := &fakeTester{results: map[string]error{}}
	s := settings()
	s.Tester = tester
	r := reviewer(t, s, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Store.ConfigMap.Namespace, Name: s.Store.ConfigMap.Name},
		Data:       map[string]string{"allow-snippet-annotations": "true", "annotations-risk-level": "Critical"},
	})
	tester.during = func() {
		during := tester.during
		tester.during = nil
		decide(t, r, ingress("b", "b", 1, "other.test", "/"))
		tester.during = during
	}
	for _, c := range []struct {
		word    string
		refused bool
		code    finding.Code
		tries   int
	}{{"good", false, "", 1}, {"good", false, "", 0}, {"wrong", true, finding.InvalidValue, 1}, {"wrong", true, finding.InvalidValue, 0}, {"later", false, finding.Waits, 1}, {"later", false, finding.Waits, 1}} {
		tester.tries = 0
		d := decide(t, r, snippetIngress("a", c.word, "one.test", "two.test", "three.test"))
		if d.Allowed() == c.refused || tester.tries != c.tries {
			t.Errorf("%s: refused %v, warned %v, %d tries", c.word, d.Refused, d.Warned, tester.tries)
		}
		found := finding.Code("")
		for _, f := range append(d.Refused, d.Warned...) {
			if f.Denies {
				found = f.Code
			}
		}
		if found != c.code {
			t.Errorf("%s: refused %v, warned %v", c.word, d.Refused, d.Warned)
		}
	}
}
