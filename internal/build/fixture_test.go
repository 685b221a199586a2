package build_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// fakeFeatures are one feature of each sort: "guard" controls access, "color"
// is dynamic with a default from the ConfigMap, "buffer" is static, "also"
// gives hosts further names, "regex" makes paths regular expressions, "instead"
// names a Service to fall back on, "own", "keeps" and "checked" are settings of backends, "hands" are
// settings of TLS connections, "clients" are such settings that count
// together, with a policy on all routes, and "seal" is one more.
// "wire" is the application protocol of ports.
func fakeFeatures() []feature.Feature {
	guard := feature.Setting[int]{Annotation: "guard", Default: 0, Parse: feature.Int(1, 9), OnInvalid: feature.Deny}
	color := feature.Setting[string]{Annotation: "color", Key: "color", Default: "gray", Parse: oneOfColors}
	buffer := feature.Setting[bool]{Annotation: "buffer", Key: "buffer", Parse: feature.Bool}
	also := feature.Setting[[]string]{Annotation: "also", Parse: feature.List, Scope: feature.ScopeName}
	instead := feature.Setting[feature.ObjectName]{Annotation: "instead", Parse: feature.Object, Refers: feature.Service}
	regex := feature.Setting[bool]{Annotation: "regex", Parse: feature.Bool}
	own := feature.Setting[bool]{Annotation: "own", Key: "own", Parse: feature.Bool, Scope: feature.ScopeBackend, Merge: feature.MergeOwner}
	keeps := feature.Setting[bool]{Annotation: "keeps", Parse: feature.Bool, Scope: feature.ScopeBackend, Merge: feature.MergeOwner}
	checked := feature.Setting[int]{Annotation: "checked", Parse: feature.Int(0, 65535), Default: -1, Scope: feature.ScopeBackend, Merge: feature.MergeOwner}
	canary := feature.Setting[int]{Annotation: "canary", Parse: feature.Int(1, 99)}
	lock := feature.Setting[feature.ObjectName]{Annotation: "lock", Parse: feature.Object, OnInvalid: feature.Deny, Refers: feature.Secret}
	note := feature.Setting[feature.ObjectName]{Annotation: "note", Parse: feature.Object, Refers: feature.ConfigMap}
	cipher := feature.Setting[model.Ciphers]{Annotation: "cipher", Parse: model.NewCiphers, OnInvalid: feature.Deny, Scope: feature.ScopeHost}
	first := feature.Setting[bool]{Annotation: "server-first", Parse: feature.Bool, Scope: feature.ScopeHost}
	authority := feature.Setting[feature.ObjectName]{Annotation: "authority", Parse: feature.Object, OnInvalid: feature.Deny, Refers: feature.Secret, Scope: feature.ScopeHost, Merge: feature.MergeTogether, Leads: true}
	depth := feature.Setting[int]{Annotation: "authority-depth", Default: 1, Parse: feature.Int(1, 9), Scope: feature.ScopeHost, Merge: feature.MergeTogether}
	seal := feature.Setting[int]{Annotation: "seal", Parse: feature.Int(1, 9), OnInvalid: feature.Deny, Scope: feature.ScopeHost, Merge: feature.MergeTogether, Leads: true}
	workers := feature.Setting[int]{Key: "workers", Default: 1, Parse: feature.Int(1, 64), Scope: feature.ScopeProcess}
	return []feature.Feature{
		{Name: "guard", Settings: []feature.AnySetting{guard}, Route: func(v feature.Values, out *feature.RouteOut) {
			if n := guard.Get(v); n != 0 {
				feature.Add(out.Route, "guard", n)
			}
		}},
		{
			Name: "color", Settings: []feature.AnySetting{color},
			Route: func(v feature.Values, out *feature.RouteOut) {
				if c := color.Get(v); c != color.Default {
					feature.Add(out.Route, "color", c)
				}
			},
			Process: func(v feature.Values, out *feature.ProcessOut) { out.Policy = color.Get(v) },
		},
		{
			Name: "names", Settings: []feature.AnySetting{also},
			Names: func(v feature.Values, out *feature.NamesOut) { out.Aliases, out.AliasesBy = also.Get(v), also },
		},
		{
			Name: "instead", Causes: map[feature.Effect]string{feature.FallbackBackend: "instead"}, Settings: []feature.AnySetting{instead},
			Route: func(v feature.Values, out *feature.RouteOut) {
				if name := instead.Get(v).Name; name != "" && out.Route.Backend != "" && !out.Route.Default {
					out.Route.Fallback = model.BackendKey(v.Origin().Namespace, name, model.FirstPort)
				}
			},
		},
		{
			Name: "regex", Settings: []feature.AnySetting{regex},
			Patterns: func(v feature.Values, _ string) feature.AnySetting {
				if regex.Get(v) {
					return regex
				}
				return nil
			},
		},
		{
			Name: "canary", Settings: []feature.AnySetting{canary},
			Canary: func(v feature.Values, _ *feature.Report) (any, bool) { return canary.Get(v), canary.Get(v) > 0 },
		},
		{
			Name: "objects", Settings: []feature.AnySetting{lock, note},
			Route: func(v feature.Values, out *feature.RouteOut) {
				if secret, ok := feature.FromSecret(v, lock, "", maps.Clone[map[string][]byte]); ok {
					feature.Add(out.Route, "lock", string(secret["key"]))
				}
				if configMap, ok := feature.ConfigMapOf(v, note); ok {
					feature.Add(out.Route, "note", configMap["text"])
				}
			},
		},
		{
			Name: "own", Settings: []feature.AnySetting{own},
			Backend: func(v feature.Values, out *feature.BackendOut) { out.Balancing.ServiceAddress = own.Get(v) },
		},
		{
			Name: "keeps", Settings: []feature.AnySetting{keeps},
			Backend: func(v feature.Values, out *feature.BackendOut) {
				out.Balancing.Sessions = out.Balancing.Sessions || keeps.Get(v)
			},
		},
		{
			Name: "checked", Settings: []feature.AnySetting{checked},
			Backend: func(v feature.Values, out *feature.BackendOut) {
				if port := checked.Get(v); port >= 0 {
					out.Balancing.Check = model.HealthCheck{Target: "/healthz", Port: uint16(port)}
				}
			},
		},
		{
			Name: "hands", Settings: []feature.AnySetting{cipher, first},
			Host: func(v feature.Values, out *feature.HostOut) {
				if c := cipher.Get(v); c != (model.Ciphers{}) || first.Get(v) {
					out.TLS = fmt.Sprintf("ciphers %q, first %v", c, first.Get(v))
				}
			},
		},
		{
			Name: "clients", Settings: []feature.AnySetting{authority, depth},
			Host: func(v feature.Values, out *feature.HostOut) {
				if secret, ok := feature.FromSecret(v, authority, "", maps.Clone[map[string][]byte]); ok {
					out.Policy = "verify"
					out.TLS = fmt.Sprintf("%s:%d", secret["ca"], depth.Get(v))
					out.Contents = append(out.Contents, model.NewContent(secret["ca"]))
				}
			},
		},
		{
			Name: "wire",
			Route: func(_ feature.Values, out *feature.RouteOut) {
				asked := out.AppProtocol
				if out.Speaks = func(p string) bool { return p == asked }; asked != "" {
					feature.Add(out.Route, "wire", asked)
				}
			},
		},
		{
			Name: "seal", Settings: []feature.AnySetting{seal},
			Host: func(v feature.Values, out *feature.HostOut) {
				if n := seal.Get(v); n != 0 {
					out.Policy = n
				}
			},
		},
		{
			Name: "buffer", Settings: []feature.AnySetting{buffer, workers},
			Route: func(v feature.Values, out *feature.RouteOut) {
				if buffer.Get(v) {
					out.Route.Profile = out.Route.Profile.With(model.ProfileValue{Name: "buffering", Number: 1})
				}
			},
			Process: func(v feature.Values, out *feature.ProcessOut) { out.Process.Workers = workers.Get(v) },
		},
	}
}

func oneOfColors(text string) (string, error) {
	if text == "red" || text == "blue" {
		return text, nil
	}
	return "", errors.New("must be red or blue")
}

// decode reads documents by their kind. A TestCertificate becomes a TLS
// Secret; an object of kind Addresses is a DNS name, one of kind Health what the checks of a
// backend found.
func decode(t testing.TB, data []byte) []metav1.Object {
	t.Helper()
	var objects []metav1.Object
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var head struct{ Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		var certificate testCertificate
		var addresses testAddresses
		var health testHealth
		object := map[string]any{
			"Ingress": &networkingv1.Ingress{}, "IngressClass": &networkingv1.IngressClass{},
			"Service": &corev1.Service{}, "EndpointSlice": &discoveryv1.EndpointSlice{},
			"Secret": &corev1.Secret{}, "ConfigMap": &corev1.ConfigMap{}, "TestCertificate": &certificate,
			"Node": &corev1.Node{}, "Addresses": &addresses, "Health": &health,
		}[head.Kind]
		if object == nil {
			t.Fatalf("a document has the kind %q", head.Kind)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		switch head.Kind {
		case "TestCertificate":
			object = certificate.secret(t)
		case "Addresses":
			object = addresses.object()
		case "Health":
			object = &source.Health{ObjectMeta: metav1.ObjectMeta{Name: health.Name}, Unhealthy: health.Unhealthy}
		}
		objects = append(objects, object.(metav1.Object))
	}
	return objects
}

// testAddresses are what a DNS name stands for.
type testAddresses struct {
	metav1.TypeMeta `json:",inline"`
	Name            string       `json:"name"`
	Addresses       []netip.Addr `json:"addresses"`
	Refused         []netip.Addr `json:"refused"`
	Problem         string       `json:"problem"`
}

func (a testAddresses) object() *source.Addresses {
	object := source.NewAddresses(a.Name)
	object.Addresses, object.Refused, object.Problem = a.Addresses, a.Refused, a.Problem
	return object
}

// testHealth are the unhealthy endpoints of a backend.
type testHealth struct {
	metav1.TypeMeta `json:",inline"`
	Name            string                     `json:"name"`
	Unhealthy       []source.UnhealthyEndpoint `json:"unhealthy"`
}

// A testCertificate says what the certificate of a TLS Secret is like.
type testCertificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Names             []string `json:"names"`
	CommonName        string   `json:"commonName"`
	Expired           bool     `json:"expired"`
	WrongKey          bool     `json:"wrongKey"`
	// Noise puts text and other PEM blocks around chain and key.
	Noise bool `json:"noise"`
	// Issuer adds a second certificate of that name to the chain.
	Issuer string `json:"issuer"`
	// Reversed puts that before the first one.
	Reversed bool `json:"reversed"`
}

var keys = sync.OnceValue(func() [2]*ecdsa.PrivateKey {
	var pair [2]*ecdsa.PrivateKey
	for i := range pair {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		pair[i] = key
	}
	return pair
})

func (c testCertificate) secret(t testing.TB) *corev1.Secret {
	t.Helper()
	chain := c.sign(t, keys()[0], c.CommonName, c.Names)
	if c.Issuer != "" {
		issuer := c.sign(t, keys()[1], c.Issuer, nil)
		if c.Reversed {
			chain = append(issuer, chain...)
		} else {
			chain = append(chain, issuer...)
		}
	}
	key := keys()[0]
	if c.WrongKey {
		key = keys()[1]
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if c.Noise {
		params := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 0}})
		chain = append([]byte("subject=noise\n"), append(chain, params...)...)
		private = append(params, private...)
	}
	return &corev1.Secret{
		ObjectMeta: c.ObjectMeta, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": chain, "tls.key": private},
	}
}

func (c testCertificate) sign(t testing.TB, key *ecdsa.PrivateKey, commonName string, names []string) []byte {
	t.Helper()
	until := time.Now().Add(time.Hour)
	if c.Expired {
		until = time.Now().Add(-time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: commonName}, DNSNames: names,
		NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
