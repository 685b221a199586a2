package snapshot_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
)

const manifests = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/server-alias: www.shop.test,*.shop.example
    nginx.ingress.kubernetes.io/ssl-redirect: "yse"
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /old, pathType: Prefix, backend: {service: {name: gone, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: other, namespace: blog}
spec:
  defaultBackend: {service: {name: blog, port: {number: 80}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: foreign, namespace: shop}
spec:
  ingressClassName: traefik
  rules: [{host: foreign.test}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  ports: [{port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: options, namespace: headgate}
data: {proxy-body-size: 2m, no-such-key: "1"}
`

func take(t *testing.T, s snapshot.Settings) *snapshot.Snapshot {
	t.Helper()
	return takeOf(t, manifests, s)
}

func takeOf(t *testing.T, manifests string, s snapshot.Settings) *snapshot.Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(path, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := file.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Features, s.AnnotationPrefix = all.Features(), "nginx.ingress.kubernetes.io"
	s.Store.IngressClass, s.Store.WatchWithoutClass, s.Store.Classless = "nginx", true, true
	s.Store.ConfigMap = types.NamespacedName{Namespace: "headgate", Name: "options"}
	v, err := snapshot.Build(read.Changes, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// models are those of a kind, by their names.
func models[M any](v *snapshot.Snapshot) map[string]M {
	list := map[string]M{}
	for key, m := range v.Models {
		if m, ok := m.(M); ok {
			list[key.Name] = m
		}
	}
	return list
}

// TestBuild: every kind of unit is there, with its findings.
func TestBuild(t *testing.T) {
	v := take(t, snapshot.Settings{})
	if hosts := models[model.Host](v); len(hosts) != 2 || len(hosts["shop.test"].Routes) != 2 {
		t.Errorf("hosts: %v", hosts)
	}
	names, patterns := models[model.Name](v), models[model.NamePatterns](v)[unit.PatternsKey.Name]
	if names["www.shop.test"].Host != "shop.test" || len(patterns.LeadingWildcards) != 1 {
		t.Errorf("names: %v, patterns: %v", names, patterns)
	}
	if backends := models[model.Backend](v); len(backends) != 3 || backends["shop/gone/80"].Key != "shop/gone/80" {
		t.Errorf("backends: %v", backends)
	}
	for _, key := range []unit.Key{
		{Kind: unit.Host, Name: "shop.test"}, {Kind: unit.Host, Name: model.DefaultHost},
		{Kind: unit.Name, Name: "www.shop.test"}, {Kind: unit.Backend, Name: "shop/web/80"},
		unit.PatternsKey, unit.GlobalsKey,
	} {
		if v.Models[key] == nil {
			t.Errorf("the unit %v is not there", key)
		}
	}
	var codes []finding.Code
	for _, f := range v.All() {
		codes = append(codes, f.Code)
	}
	want := []finding.Code{finding.UnknownKey, finding.InvalidValue, finding.MissingObject, finding.MissingObject}
	if !slices.Equal(codes, want) {
		t.Errorf("findings: %v, want %v", v.All(), want)
	}
	if fs := v.Findings[unit.Backend.Key("shop/gone/80")]; len(fs) != 1 {
		t.Errorf("findings of shop/gone/80: %v", fs)
	}
}

// TestNamespace: from other namespaces, only the ConfigMap with the options is used.
func TestNamespace(t *testing.T) {
	v := take(t, snapshot.Settings{Namespace: "blog"})
	hosts, backends, globals := models[model.Host](v), models[model.Backend](v), models[model.Globals](v)[unit.GlobalsName]
	if len(hosts) != 1 || len(backends) != 1 || len(globals.Policies) == 0 {
		t.Errorf("hosts %v, backends %v, globals %v", hosts, backends, globals)
	}
	if fs := v.All(); len(fs) != 2 || fs[0].Code != finding.UnknownKey {
		t.Errorf("findings: %v", fs)
	}
}

// TestDefaultCertificate: its Secret is used from any namespace, and an unusable
// one has a finding.
func TestDefaultCertificate(t *testing.T) {
	var s snapshot.Settings
	s.Namespace = "shop"
	s.Store.DefaultCertificate = types.NamespacedName{Namespace: "headgate", Name: "pair"}
	key := unit.DefaultCertificateKey
	pair := headgatetest.NewKeyPair(t, "pair", "pair.test")
	for _, c := range []struct {
		manifests string
		code      finding.Code
	}{
		{"", finding.MissingObject},
		{"---\napiVersion: v1\nkind: Secret\nmetadata: {name: pair, namespace: headgate}\n", finding.BadCertificate},
		{strings.Replace(headgatetest.TLSSecret("pair", pair), "name: pair", "name: pair, namespace: headgate", 1), ""},
	} {
		v := takeOf(t, manifests+c.manifests, s)
		var code finding.Code
		for _, f := range v.Findings[key] {
			code = f.Code
		}
		if code != c.code || (v.Models[key] != nil) != (c.code == "") {
			t.Errorf("with %s: findings %v, certificate %v, want %q", c.manifests, v.Findings[key], v.Models[key], c.code)
		}
	}
}

// TestExcluded: an excluded Ingress has findings and nothing else.
func TestExcluded(t *testing.T) {
	var s snapshot.Settings
	s.Store.Scope.NoCatchAll = true
	v := take(t, s)
	fs := v.Findings[unit.Refusal.Key("blog/other")]
	if len(fs) != 1 || fs[0].Code != finding.Excluded || fs[0].Object != "ingress/blog/other" {
		t.Errorf("findings: %v", fs)
	}
	if backends := models[model.Backend](v); len(backends) != 2 {
		t.Errorf("backends: %v", backends)
	}
}
