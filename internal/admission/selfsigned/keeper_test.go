package selfsigned

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/admission/certgen"
	"github.com/headgate/headgate/internal/cluster/kept"
	"github.com/headgate/headgate/internal/test/clienttest"
)

var (
	secretName  = types.NamespacedName{Namespace: "own", Name: "certificate"}
	serviceName = types.NamespacedName{Namespace: "own", Name: "webhook"}
)

const (
	serverName        = "webhook.own.svc"
	configurationName = "configuration"
)

// A fixture is a cluster with a configuration whose second webhook calls another Service.
type fixture struct {
	*testing.T
	cluster *fake.Clientset
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	service := func(name string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "own", Name: name}}
	}
	f := &fixture{t, fake.NewClientset(append(objects, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName, ResourceVersion: "1"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "ours", ClientConfig: service("webhook")}, {Name: "other", ClientConfig: service("other")}},
	})...)}
	clienttest.CheckVersions(f.cluster)
	return f
}

func (f *fixture) keeper() *Keeper {
	return New(Settings{
		Client: clienttest.Of(f.cluster), Secret: secretName, Configuration: configurationName, Service: serviceName,
		Timing: Timing{Validity: 24 * time.Hour, RenewBefore: 6 * time.Hour, Interval: time.Millisecond},
		Log:    slog.New(slog.NewTextHandler(f.Output(), nil)),
	})
}

func (f *fixture) look(k *Keeper) {
	f.Helper()
	if err := k.look(f.Context()); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) secret() *corev1.Secret {
	f.Helper()
	s, err := f.cluster.CoreV1().Secrets(secretName.Namespace).Get(f.Context(), secretName.Name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) change(change func(*corev1.Secret)) {
	f.Helper()
	s := f.secret()
	change(s)
	if _, err := f.cluster.CoreV1().Secrets(secretName.Namespace).Update(f.Context(), s, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) renew() {
	f.Helper()
	f.change(func(s *corev1.Secret) { s.Annotations = map[string]string{RenewAnnotation: "now"} })
}

func (f *fixture) bundle() []byte {
	f.Helper()
	c, err := f.cluster.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(f.Context(), configurationName, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	if other := c.Webhooks[1].ClientConfig.CABundle; other != nil {
		f.Errorf("the webhook of another Service has a CA bundle:\n%s", other)
	}
	return c.Webhooks[0].ClientConfig.CABundle
}

// call is what API servers do: it returns the serial number of the certificate.
func call(k *Keeper, bundle []byte) (string, error) {
	served, err := k.Certificate(nil)
	if err != nil {
		return "", err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(bundle)
	_, err = served.Leaf.Verify(x509.VerifyOptions{DNSName: serverName, Roots: trusted})
	return served.Leaf.SerialNumber.String(), err
}

// calls calls replicas, and returns their serial numbers.
func (f *fixture) calls(replicas ...*Keeper) (serials []string) {
	f.Helper()
	for _, k := range replicas {
		serial, err := call(k, f.bundle())
		if err != nil {
			f.Error(err)
		}
		serials = append(serials, serial)
	}
	return serials
}

// TestRenewal goes through a renewal step by step, in every step of which both replicas can
// be called.
func TestRenewal(t *testing.T) {
	f := newFixture(t)
	a, b := f.keeper(), f.keeper()
	if _, err := a.Certificate(nil); err == nil {
		t.Error("there is a certificate before the first look")
	}
	f.look(a)
	f.look(b)
	first := f.calls(a, b)
	if first[0] != first[1] {
		t.Errorf("the replicas have %v", first)
	}
	f.renew()
	a.Timing.Delay, b.Timing.Delay = time.Hour, time.Hour
	for range 3 {
		f.look(a)
		f.look(b)
		if got := f.calls(a, b); got[0] != first[0] || got[1] != first[0] {
			t.Errorf("before the new certificate is trusted for long enough, the replicas have %v", got)
		}
	}
	if n := bytes.Count(f.bundle(), []byte("BEGIN")); n != 2 {
		t.Errorf("the CA bundle has %d authorities", n)
	}
	b.Timing.Delay = 0
	f.look(b)
	if got := f.calls(a, b); got[0] != first[0] || got[1] == first[0] {
		t.Errorf("after one replica has changed, they have %v", got)
	}
	f.look(a)
	if got := f.calls(a, b); got[0] != got[1] || got[0] == first[0] {
		t.Errorf("after both have changed, they have %v", got)
	}
	// A replica that starts now, and nothing else to do.
	before := f.secret().ResourceVersion
	c := f.keeper()
	f.look(c)
	f.look(a)
	f.calls(a, b, c)
	if s := f.secret(); s.ResourceVersion != before || len(s.Data) != 3 || len(s.Annotations) != 0 {
		t.Errorf("the Secret is %v", s)
	}
	f.renew()
	b.Timing.Delay = 0
	for range 2 {
		f.look(b)
	}
	f.look(a)
	f.calls(a, b)
	if n := bytes.Count(f.bundle(), []byte("BEGIN")); n != 2 {
		t.Errorf("after two renewals, the CA bundle has %d authorities", n)
	}
}

// TestUntrusted: a new certificate is not served while the configuration can't be written.
func TestUntrusted(t *testing.T) {
	f := newFixture(t)
	k := f.keeper()
	f.look(k)
	first := f.calls(k)
	forbidden := true
	f.cluster.PrependReactor("update", "validatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		return forbidden, nil, apierrors.NewForbidden(schema.GroupResource{}, configurationName, nil)
	})
	f.renew()
	for range 3 {
		if err := k.look(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("the error is %v", err)
		}
		if got := f.calls(k); got[0] != first[0] {
			t.Error("the new certificate is served")
		}
	}
	forbidden = false
	f.look(k)
	f.look(k)
	if got := f.calls(k); got[0] == first[0] {
		t.Error("the new certificate is not served")
	}
}

// TestStaleReplica: one that was stopped between reading and writing changes nothing.
func TestStaleReplica(t *testing.T) {
	f := newFixture(t)
	a, b := f.keeper(), f.keeper()
	f.look(a)
	old := f.bundle()
	f.look(b)
	c, err := a.readConfiguration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.renew()
	f.look(b)
	if err := c.trust(t.Context(), a, append(old, old...)); !kept.IsOvertaken(err) {
		t.Errorf("the error is %v", err)
	}
	if bytes.Equal(f.bundle(), old) {
		t.Error("the CA bundle is the old one")
	}
}

// TestRepairs: what is wrong with the Secret or the configuration is repaired.
func TestRepairs(t *testing.T) {
	expired, err := certgen.New([]string{serverName}, time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	k := f.keeper()
	f.look(k)
	for name, break_ := range map[string]func(*corev1.Secret){
		"no certificate": func(s *corev1.Secret) { delete(s.Data, "cert") },
		"no data":        func(s *corev1.Secret) { s.Data = nil },
		"expired":        func(s *corev1.Secret) { certgen.DefaultKeys.Put(s, expired) },
		"no CA":          func(s *corev1.Secret) { s.Data["ca"] = []byte("x") },
	} {
		before := f.calls(k)
		f.change(break_)
		f.look(k)
		if got := f.calls(k); got[0] == before[0] {
			t.Errorf("%s: the certificate is the same", name)
		}
	}
	c, err := f.cluster.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), configurationName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Webhooks[0].ClientConfig.CABundle = nil
	if _, err := f.cluster.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.look(k)
	f.calls(k)
}

// TestNames: a certificate for other names is renewed, and keeps them for replicas that ask
// for them.
func TestNames(t *testing.T) {
	f := newFixture(t)
	pair, err := certgen.New([]string{"other.own.svc"}, time.Now(), time.Now().Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretName.Namespace, Name: secretName.Name, ResourceVersion: "1"}, Data: map[string][]byte{"more": []byte("x")}}
	certgen.DefaultKeys.Put(s, pair)
	if err := f.cluster.Tracker().Add(s); err != nil {
		t.Fatal(err)
	}
	k := f.keeper()
	f.look(k)
	f.look(k)
	f.calls(k)
	served, err := k.Certificate(nil)
	if err != nil || served.Leaf.VerifyHostname("other.own.svc") != nil {
		t.Errorf("the certificate is for %v, %v", served.Leaf.DNSNames, err)
	}
	if got := f.secret().Data; string(got["more"]) != "x" {
		t.Error("another key of the Secret is gone")
	}
}

// TestMissingObjects: the certificate is served without a configuration to write, or the
// permission to write the Secret, and the error says what is wrong.
func TestMissingObjects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Keeper)
		want   string
	}{
		"no configuration": {func(k *Keeper) { k.Configuration = "none" }, "there is no ValidatingWebhookConfiguration none"},
		"another Service":  {func(k *Keeper) { k.Service.Namespace = "shop" }, "no webhook of the ValidatingWebhookConfiguration configuration calls the Service shop/webhook"},
	} {
		k := newFixture(t).keeper()
		c.change(k)
		if err := k.look(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := k.Certificate(nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := newFixture(t)
	f.look(f.keeper())
	f.renew()
	f.cluster.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, secretName.Name, nil)
	})
	k := f.keeper()
	if err := k.look(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("the error is %v", err)
	}
	f.calls(k)
}
