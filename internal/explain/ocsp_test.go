package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestOCSPResponseUnit: the OCSP response of the certificate that is shown is among
// the units, also that of the default certificate.
func TestOCSPResponseUnit(t *testing.T) {
	pair := headgatetest.NewKeyPair(t, "a.test", "a.test")
	name := types.NamespacedName{Namespace: "shop", Name: "pair"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pair"}}
	secret.Data = map[string][]byte{"tls.crt": []byte(pair.Certificate), "tls.key": []byte(pair.Key)}
	named := settings("a.test", "/", "none", "pair")
	named.Store.Apply(secret, false)
	byDefault := explain.Settings{Builder: build.New(all.Features(), prefix), Features: all.Features(), Now: time.Unix(3, 0)}
	byDefault.Store = store.New(store.Settings{DefaultCertificate: name}, byDefault.Builder.Refer)
	byDefault.Store.Apply(secret, false)
	certificate, _ := byDefault.Builder.DefaultCertificate(byDefault.Store)
	for about, s := range map[string]explain.Settings{"of a name": named, "default": byDefault} {
		if got := responses(t, s); len(got) != 0 {
			t.Errorf("%s: responses %v before there is one", about, got)
		}
		s.Store.Apply(&source.OCSPResponse{ObjectMeta: metav1.ObjectMeta{Name: certificate.Hash}, Response: []byte("x"), Until: time.Unix(9, 0)}, false)
		if got := responses(t, s); !slices.Equal(got, []string{certificate.Hash}) {
			t.Errorf("%s: responses %v, want that of %s", about, got, certificate.Hash)
		}
	}
}

func responses(t *testing.T, s explain.Settings) (names []string) {
	t.Helper()
	e, err := explain.Explain(explain.Query{URL: "https://a.test/"}, s)
	if err != nil {
		t.Fatal(err)
	}
	certificate := false
	for _, u := range e.Units {
		certificate = certificate || u.Kind == "certificate"
		if u.Kind == "ocsp" {
			names = append(names, u.Name)
		}
		if strings.TrimSpace(u.Version) == "" {
			t.Errorf("unit %v has no version", u)
		}
	}
	if !certificate {
		t.Errorf("no certificate among %v", e.Units)
	}
	return names
}
