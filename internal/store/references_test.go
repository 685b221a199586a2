package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/internal/unit"
)

func TestTakeSecrets(t *testing.T) {
	s := store.New(settings(), refer)
	step := func(about, want string) {
		t.Helper()
		references := s.DrainSecrets()
		added, removed := references.Added, references.Removed
		byName := func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) }
		slices.SortFunc(added, byName)
		slices.SortFunc(removed, byName)
		if got := fmt.Sprint(added, removed); got != want {
			t.Errorf("%s: got %s, want %s", about, got, want)
		}
	}
	s.Apply(class("nginx", controllerClass), false)
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "x"), false)
	s.Apply(withTLS(ingress("b", "nginx", "b.example / one"), "x"), false)
	s.Apply(withTLS(ingress("c", "other", "c.example / one"), "foreign"), false)
	step("two Ingresses and one of another class", "[shop/x] []")
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "y"), false)
	step("one of them refers to another Secret", "[shop/y] []")
	s.Apply(withTLS(ingress("b", "nginx", "b.example / one"), "y"), false)
	step("the other one follows", "[] [shop/x]")
	s.Apply(ingress("a", "nginx", "a.example / one"), false)
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "y"), false)
	s.Apply(withTLS(ingress("d", "nginx", "d.example / one"), "z"), false)
	s.Apply(ingress("d", ""), true)
	step("what comes and goes between two calls", "[] []")
	s.Apply(class("other", controllerClass), false)
	step("a class that becomes ours", "[shop/foreign] []")
	s.Apply(ingress("a", ""), true)
	s.Apply(ingress("b", ""), true)
	s.Apply(ingress("c", ""), true)
	step("all deleted", "[] [shop/foreign shop/y]")
	step("nothing", "[] []")
}

// TestDefaultCertificate: the administrator's Secret is wanted from the start
// and for good, and a change of it touches the default-certificate.
func TestDefaultCertificate(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "tls"}
	of := settings()
	of.DefaultCertificate = name
	s := store.New(of, refer)
	if r := s.DrainSecrets(); len(r.Added) != 1 || r.Added[0] != name {
		t.Errorf("wanted at the start: %v", r)
	}
	for _, c := range []struct {
		content, want string
		deleted       bool
	}{{"x", "default-certificate", false}, {"x", "", false}, {"y", "default-certificate", false}, {"", "default-certificate", true}} {
		if got := text(s.Apply(secret("tls", c.content), c.deleted)); got != c.want {
			t.Errorf("%+v: touched %q", c, got)
		}
	}
	s.Apply(class("nginx", controllerClass), false)
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "tls"), false)
	if got := text(s.Apply(secret("tls", "x"), false)); got != "default-certificate, name a.example" {
		t.Errorf("a Secret that an Ingress names too touches %q", got)
	}
	s.Apply(ingress("a", ""), true)
	if r := s.DrainSecrets(); len(r.Added)+len(r.Removed) != 0 {
		t.Errorf("an Ingress that names it too comes and goes: %v", r)
	}
	if got := store.New(settings(), refer).DrainSecrets(); len(got.Added) != 0 {
		t.Errorf("wanted without a default-certificate: %v", got)
	}
}

// TestTakeIssuers: the URLs of certificates in use are wanted, and what is
// there touches those who show them.
func TestTakeIssuers(t *testing.T) {
	authority := pkitest.New(t)
	of := settings()
	of.CompleteChains, of.DefaultCertificate = true, types.NamespacedName{Namespace: "shop", Name: "main"}
	s := store.New(of, refer)
	url := authority.URL + "/intermediate"
	step := func(about, want string) {
		t.Helper()
		r := s.DrainIssuers()
		if got := fmt.Sprint(r.Added, r.Removed); got != want {
			t.Errorf("%s: got %s, want %s", about, got, want)
		}
	}
	touched := func(about string, object metav1.Object, deleted bool, want string) {
		t.Helper()
		if got := text(s.Apply(object, deleted)); got != want {
			t.Errorf("%s: got %q, want %q", about, got, want)
		}
	}
	fetched := func(problem string) *source.Issuers {
		return &source.Issuers{ObjectMeta: metav1.ObjectMeta{Name: url}, Problem: problem}
	}
	lone := secret("tls", authority.Issue("a.example").Certificate)
	s.Apply(class("nginx", controllerClass), false)
	s.Apply(lone, false)
	step("an unused Secret", "[] []")
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "tls"), false)
	step("it comes into use", fmt.Sprintf("[%s] []", url))
	touched("it was fetched", fetched("x"), false, "name a.example")
	touched("the same again", fetched("x"), false, "")
	touched("it changed", fetched(""), false, "name a.example")
	s.Apply(secret("main", authority.Issue("b.example").Certificate), false)
	step("another certificate names it too", "[] []")
	touched("both show it", fetched("x"), false, "default-certificate, name a.example")
	s.Apply(ingress("a", ""), true)
	step("one of them goes out of use", "[] []")
	s.Apply(secret("main", "x"), false)
	step("the other names it no more", fmt.Sprintf("[] [%s]", url))
	touched("it is gone", fetched("x"), true, "")
	s.Apply(lone, true)
	if got := store.New(settings(), refer); text(got.Apply(lone, false)) != "" || len(got.DrainIssuers().Added) > 0 {
		t.Error("URLs are wanted without being asked for")
	}
}

// TestOCSPResponseTouched: an OCSP response touches its own unit, if it is new.
func TestOCSPResponseTouched(t *testing.T) {
	s := store.New(settings(), refer)
	touched := unit.OCSPResponse.Key("abc").String()
	response := func(response string, until int64) *source.OCSPResponse {
		return &source.OCSPResponse{ObjectMeta: metav1.ObjectMeta{Name: "abc"}, Response: []byte(response), Until: time.Unix(until, 0)}
	}
	for _, c := range []struct {
		object  *source.OCSPResponse
		deleted bool
		want    string
	}{
		{response("x", 1), false, touched}, {response("x", 1), false, ""}, {response("x", 2), false, touched},
		{response("y", 2), false, touched}, {response("y", 2), true, touched}, {response("y", 2), true, ""},
	} {
		if got := text(s.Apply(c.object, c.deleted)); got != c.want {
			t.Errorf("%+v: touched %q", c, got)
		}
	}
}

// TestSecretOfOptions is the same for a Secret.
func TestSecretOfOptions(t *testing.T) {
	key := feature.Setting[feature.ObjectName]{
		Key: "secret", Parse: feature.Optional(feature.ObjectIn), Scope: feature.ScopeProcess, Refers: feature.Secret,
	}
	s := store.New(settings(), build.New([]feature.Feature{{Settings: []feature.AnySetting{key}}}, "x").Refer)
	options := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: "options"}, Data: map[string]string{"secret": "shop/one"}}
	s.Apply(options, false)
	if r := s.DrainSecrets(); fmt.Sprint(r.Added, r.Removed) != "[shop/one] []" {
		t.Errorf("the key names one: %v", r)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}
	for _, deleted := range []bool{false, true} {
		if got := text(s.Apply(secret, deleted)); got != "globals" {
			t.Errorf("touched %q (deleted: %v)", got, deleted)
		}
	}
	s.Apply(options, true)
	if r := s.DrainSecrets(); fmt.Sprint(r.Added, r.Removed) != "[] [shop/one]" {
		t.Errorf("without the options: %v", r)
	}
}

// TestConfigMapsOfOptions: what a key refers to is wanted, and a change of it touches the
// globals alone.
func TestConfigMapsOfOptions(t *testing.T) {
	key := feature.Setting[feature.ObjectName]{
		Key: "headers", Parse: feature.Optional(feature.ObjectIn), Scope: feature.ScopeProcess, Refers: feature.ConfigMap,
	}
	builder := build.New([]feature.Feature{{Settings: []feature.AnySetting{key}}}, "x")
	s := store.New(settings(), builder.Refer)
	configMap := func(namespace, name, key, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: value}}
	}
	wants := func(about, want string) {
		t.Helper()
		if r := s.DrainConfigMaps(); fmt.Sprint(r.Added, r.Removed) != want {
			t.Errorf("%s: %v, want %s", about, r, want)
		}
	}
	touches := func(o *corev1.ConfigMap, deleted bool, want string) {
		t.Helper()
		if got := text(s.Apply(o, deleted)); got != want {
			t.Errorf("%s (deleted: %v) touched %q, want %q", o.Name, deleted, got, want)
		}
	}
	s.Apply(class("nginx", controllerClass), false)
	s.Apply(ingress("a", "nginx", "a.example / one"), false)
	touches(configMap("shop", "one", "X", "1"), false, "")
	s.Apply(configMap("headgate", "options", "headers", "shop/one"), false)
	wants("the key names one", "[shop/one] []")
	touches(configMap("shop", "one", "X", "2"), false, "globals")
	touches(configMap("shop", "one", "X", "2"), false, "")
	touches(configMap("shop", "two", "X", "2"), false, "")
	s.Apply(configMap("headgate", "options", "headers", "shop/two"), false)
	wants("the key names another one", "[shop/two] [shop/one]")
	touches(configMap("shop", "one", "X", "3"), false, "")
	touches(configMap("shop", "two", "", ""), true, "globals")
	s.Apply(configMap("headgate", "options", "headers", ""), true)
	wants("without the options", "[] [shop/two]")
}
