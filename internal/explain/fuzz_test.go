package explain_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/explain/text"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/store"
)

const prefix = "nginx.ingress.kubernetes.io"

// settings explain an Ingress with two rules and an older one with one. A tenant
// wrote all texts.
func settings(host, path, annotation, value string) explain.Settings {
	builder := build.New(all.Features(), prefix)
	s := store.New(store.Settings{Classless: true, IngressClass: "nginx"}, builder.Refer)
	ingress := func(name string, at int64, paths ...string) {
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(at, 0)),
			Annotations: map[string]string{prefix + "/" + annotation: value},
		}}
		for _, p := range paths {
			kind := networkingv1.PathType([]string{"Exact", "Prefix", "ImplementationSpecific"}[len(p)%3])
			ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{
				Host: host,
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: p, PathType: &kind, Backend: networkingv1.IngressBackend{
						Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
					},
				}}}},
			})
		}
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: value}}
		s.Apply(ing, false)
	}
	ingress("web", 2, path, path+"/x")
	ingress("older", 1, path)
	return explain.Settings{Store: s, Builder: builder, Features: all.Features(), HealthPath: "/healthz", HTTPSPort: 443, Now: time.Unix(3, 0)}
}

// FuzzExplain fuzzes the texts of tenants and queries. No text makes it crash, its
// text form has printable characters and short lines only, and its JSON form
// can be read back without loss.
func FuzzExplain(f *testing.F) {
	f.Add("http://a.test/x", "A: 1", "10.0.0.1", "a.test", "/x", "use-regex", "true")
	f.Add("https://a.test:443/x/../y?z#w", "Host: b.test", "", "*.test", "/(", "use-regex", "true")
	f.Add("a.test", "", "::1", "", "/x/", "server-alias", "*.a.test, ~^a")
	f.Add("http://[::1]/%zz", "x", "x", "_", "bad", "auth-url", "\x1b[31m\u202e")
	f.Add("http:///%00", "Host:", "", "a.test", "//", "proxy-body-size", strings.Repeat("9", 500))
	f.Fuzz(func(t *testing.T, url, header, from, host, path, annotation, value string) {
		q := explain.Query{URL: url, From: from}
		if header != "" {
			q.Headers = []string{header}
		}
		e, err := explain.Explain(q, settings(host, path, annotation, value))
		if wrong := new(explain.QueryError); err != nil {
			if !errors.As(err, &wrong) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var written strings.Builder
		if err := text.Write(&written, &e, true); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(written.String()) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > 100 || strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Fatalf("a line %q", line)
			}
		}
		// Invalid UTF-8 is replaced the first time.
		packed := throughJSON(t, &e)
		var back report.Explanation
		if err := json.Unmarshal(packed, &back); err != nil {
			t.Fatal(err)
		}
		if again := throughJSON(t, &back); string(again) != string(packed) {
			t.Fatalf("%s came back as %s", packed, again)
		}
	})
}

// TestSameText: the same objects and query give the same text.
func TestSameText(t *testing.T) {
	first := ""
	for range 20 {
		e, err := explain.Explain(explain.Query{URL: "http://a.a.test/x/y"}, settings("a.test", "/x", "server-alias", "*.a.test, a.a.*, ~^a, ~^a\\."))
		if err != nil {
			t.Fatal(err)
		}
		packed, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text := string(packed)
		if first == "" {
			first = text
		}
		if text != first {
			t.Fatalf("%s\nand\n%s", first, text)
		}
	}
}

// throughJSON packs an explanation, and once more what that gives.
func throughJSON(t *testing.T, e *report.Explanation) []byte {
	t.Helper()
	for range 2 {
		packed, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		e = &report.Explanation{}
		if err := json.Unmarshal(packed, e); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}
