package certgen_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/admission/certgen"
	"github.com/headgate/headgate/internal/test/clienttest"
)

var now = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// verify is the error of a client that trusts the authorities of a pair and calls a name.
func verify(ca []byte, p certgen.Pair, name string, at time.Time) error {
	served, err := p.Read()
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	_, err = served.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: trusted, CurrentTime: at})
	return err
}

func TestNew(t *testing.T) {
	long := strings.Repeat("a", 63) + ".shop.svc"
	until := now.AddDate(certgen.Validity, 0, 0)
	pair, err := certgen.New([]string{"web", long, "192.0.2.1", "2001:db8::1"}, now, until)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		at   time.Time
		good bool
	}{
		{"web", now, true},
		{long, now.Add(-time.Minute), true},
		{"192.0.2.1", until.Add(-time.Second), true},
		{"2001:db8::1", now, true},
		{"shop", now, false},
		{"192.0.2.2", now, false},
		{"web", until.Add(time.Second), false},
		{"web", now.Add(-2 * time.Hour), false},
	} {
		if err := verify(pair.CA, pair, c.name, c.at); (err == nil) != c.good {
			t.Errorf("%s at %v: %v", c.name, c.at, err)
		}
	}
	other, err := certgen.New([]string{"web"}, now, until)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(other.CA, pair, "web", now); err == nil {
		t.Error("the authority of another certificate is good too")
	}
	after := other.After(pair)
	for _, p := range []certgen.Pair{pair, after} {
		if err := verify(after.CA, p, "web", now); err != nil {
			t.Error(err)
		}
	}
	// What the older pair had from one before it is left out.
	if third := pair.After(after); bytes.Count(third.CA, []byte("BEGIN")) != 2 {
		t.Errorf("the CA has\n%s", third.CA)
	}
	if _, err := certgen.New(nil, now, until); err == nil {
		t.Error("a certificate without a name")
	}
}

func TestBadPairs(t *testing.T) {
	until := now.Add(time.Hour)
	one, err := certgen.New([]string{"a"}, now, until)
	if err != nil {
		t.Fatal(err)
	}
	two, err := certgen.New([]string{"a"}, now, until)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]certgen.Pair{
		"empty": {}, "no CA": {Certificate: one.Certificate, Key: one.Key},
		"another CA":  {CA: two.CA, Certificate: one.Certificate, Key: one.Key},
		"another key": {CA: one.CA, Certificate: one.Certificate, Key: two.Key},
		"no PEM":      {CA: []byte("x"), Certificate: []byte("x"), Key: []byte("x")},
	} {
		if _, err := p.Read(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzRead: what is in a Secret may be anything.
func FuzzRead(f *testing.F) {
	pair, err := certgen.New([]string{"a", "192.0.2.1"}, now, now.Add(time.Hour))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pair.CA, pair.Certificate, pair.Key)
	f.Add(append(slices.Clone(pair.CA), pair.CA...), append(slices.Clone(pair.Certificate), pair.CA...), pair.Key)
	f.Add([]byte("-----BEGIN CERTIFICATE-----"), pair.Certificate, []byte{})
	f.Fuzz(func(t *testing.T, ca, certificate, key []byte) {
		p := certgen.Pair{CA: ca, Certificate: certificate, Key: key}
		served, err := p.Read()
		if err != nil {
			return
		}
		if len(p.Issuers(served.Leaf)) == 0 || len(pair.After(p).CA) <= len(pair.CA) {
			t.Error("the authority of a certificate that can be served is lost")
		}
	})
}

var name = types.NamespacedName{Namespace: "shop", Name: "webhook"}

func request(t *testing.T, cluster *fake.Clientset) certgen.Request {
	return certgen.Request{
		Client: clienttest.Of(cluster), Secret: name, Keys: certgen.Keys{Certificate: "c", Key: "k"}, Names: []string{"web"},
		Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func read(t *testing.T, cluster *fake.Clientset) *corev1.Secret {
	t.Helper()
	s, err := cluster.CoreV1().Secrets(name.Namespace).Get(t.Context(), name.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCreate(t *testing.T) {
	cluster := fake.NewClientset()
	r := request(t, cluster)
	if err := r.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := read(t, cluster)
	pair := r.Keys.Pair(first)
	if err := verify(pair.CA, pair, "web", now.AddDate(99, 11, 0)); err != nil {
		t.Error(err)
	}
	// It is left alone, also for another name, and if the end is not near.
	r.Names = []string{"other"}
	for _, before := range []time.Duration{0, 24 * time.Hour} {
		r.RotateBefore = before
		if err := r.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.Keys.Pair(read(t, cluster)); !bytes.Equal(got.Certificate, pair.Certificate) {
			t.Errorf("another certificate with --rotate-before %v", before)
		}
	}
	now := now.AddDate(certgen.Validity, 0, -1).Add(time.Minute)
	r.Now = func() time.Time { return now }
	conflicts := 0
	cluster.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts++
		return conflicts == 1, nil, apierrors.NewConflict(schema.GroupResource{}, name.Name, nil)
	})
	if err := r.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	renewed := r.Keys.Pair(read(t, cluster))
	if bytes.Equal(renewed.Certificate, pair.Certificate) || conflicts != 2 {
		t.Errorf("not renewed, with %d updates", conflicts)
	}
	if err := verify(renewed.CA, renewed, "other", now); err != nil {
		t.Error(err)
	}
	if err := verify(renewed.CA, pair, "web", now); err != nil {
		t.Errorf("the old certificate is not trusted: %v", err)
	}
}

// TestCreateRace: another process creates the Secret after it was looked for.
func TestCreateRace(t *testing.T) {
	cluster := fake.NewClientset()
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{"ca": []byte("x")}}
	cluster.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return false, nil, cluster.Tracker().Add(other)
	})
	if err := request(t, cluster).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := read(t, cluster); string(s.Data["ca"]) != "x" {
		t.Errorf("the other one's Secret was changed: %v", s.Data)
	}
}

func TestCreateFails(t *testing.T) {
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: data}
	}
	for _, c := range []struct {
		name   string
		secret *corev1.Secret
		before time.Duration
		want   string
	}{
		{"no CA", secret(nil), 0, `has no key "ca"`},
		{"no certificate", secret(map[string][]byte{"ca": []byte("x")}), time.Hour, "can't be renewed"},
	} {
		cluster := fake.NewClientset(c.secret)
		r := request(t, cluster)
		r.RotateBefore = c.before
		if err := r.Create(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := read(t, cluster); len(got.Data) != len(c.secret.Data) {
			t.Errorf("%s: the Secret was changed", c.name)
		}
	}
	cluster := fake.NewClientset()
	cluster.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name.Name, nil)
	})
	if err := request(t, cluster).Create(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("forbidden: %v", err)
	}
}

func configurations() (*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration) {
	meta, policy := metav1.ObjectMeta{Name: "webhook"}, admissionregistrationv1.Fail
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "a", FailurePolicy: &policy}, {Name: "b"}},
		}, &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "a", FailurePolicy: &policy}},
		}
}

func patch(t *testing.T, objects ...runtime.Object) certgen.Patch {
	return patchOf(t, fake.NewClientset(objects...))
}

func patchOf(t *testing.T, cluster *fake.Clientset) certgen.Patch {
	gvr := map[schema.GroupVersionResource]string{{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}: "APIServiceList"}
	return certgen.Patch{
		Client: clienttest.Of(cluster), Secret: name, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), gvr, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.metrics"},
			"spec": map[string]any{"insecureSkipTLSVerify": true, "group": "metrics"},
		}}),
	}
}

// patched is what the webhooks have: kind, CA bundle and failure policy.
func patched(t *testing.T, p certgen.Patch) string {
	t.Helper()
	validating, err := p.Client.ValidatingWebhookConfigurations().Get(t.Context(), "webhook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mutating, err := p.Client.MutatingWebhookConfigurations().Get(t.Context(), "webhook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	add := func(kind string, ca []byte, policy *admissionregistrationv1.FailurePolicyType) {
		text := "-"
		if policy != nil {
			text = string(*policy)
		}
		found = append(found, kind+":"+string(ca)+":"+text)
	}
	for _, w := range validating.Webhooks {
		add("V", w.ClientConfig.CABundle, w.FailurePolicy)
	}
	for _, w := range mutating.Webhooks {
		add("M", w.ClientConfig.CABundle, w.FailurePolicy)
	}
	return strings.Join(found, " ")
}

func TestPatch(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{"ca": []byte("x")}}
	for _, c := range []struct {
		validating, mutating string
		policy               admissionregistrationv1.FailurePolicyType
		want                 string
	}{
		{"webhook", "", "", "V:x:Fail V:x:- M::Fail"},
		{"", "webhook", "", "V::Fail V::- M:x:Fail"},
		{"webhook", "webhook", "Ignore", "V:x:Ignore V:x:Ignore M:x:Ignore"},
		{"webhook", "", "Fail", "V:x:Fail V:x:Fail M::Fail"},
	} {
		validating, mutating := configurations()
		p := patch(t, secret, validating, mutating)
		p.Validating, p.Mutating, p.FailurePolicy = c.validating, c.mutating, c.policy
		if err := p.Apply(t.Context()); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if got := patched(t, p); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

func TestPatchAPIService(t *testing.T) {
	validating, mutating := configurations()
	p := patch(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{"ca": []byte("x")}}, validating, mutating)
	// The others are patched although one is missing.
	p.Validating, p.APIService, p.Mutating = "none", "v1.metrics", "webhook"
	if err := p.Apply(t.Context()); err == nil || !apierrors.IsNotFound(unwrap(err)) {
		t.Errorf("a missing configuration: %v", err)
	}
	if got, want := patched(t, p), "V::Fail V::- M:x:Fail"; got != want {
		t.Errorf("got %s", got)
	}
	s, err := p.Dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).Get(t.Context(), "v1.metrics", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(s.Object, "spec")
	if _, insecure := spec["insecureSkipTLSVerify"]; err != nil || insecure || spec["caBundle"] != base64.StdEncoding.EncodeToString([]byte("x")) || spec["group"] != "metrics" {
		t.Errorf("the APIService has %v, %v", spec, err)
	}
}

func unwrap(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}

func TestPatchWithoutCA(t *testing.T) {
	validating, mutating := configurations()
	for want, objects := range map[string][]runtime.Object{
		"run create first": {validating, mutating},
		`has no key "ca"`:  {validating, mutating, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}},
	} {
		cluster := fake.NewClientset(objects...)
		p := patchOf(t, cluster)
		p.Validating = "webhook"
		if err := p.Apply(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
		if list := cluster.Actions(); slices.ContainsFunc(list, func(a clienttesting.Action) bool { return a.GetVerb() == "update" }) {
			t.Errorf("want %s: something was updated", want)
		}
	}
}
