package authority

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/cluster/kept"
	"github.com/headgate/headgate/internal/test/clienttest"
	"github.com/headgate/headgate/internal/unit/link"
)

var name = types.NamespacedName{Namespace: "own", Name: "headgate-edges"}

type fixture struct {
	*testing.T
	cluster *fake.Clientset
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	f := &fixture{t, fake.NewClientset(objects...)}
	clienttest.CheckVersions(f.cluster)
	return f
}

func (f *fixture) keeper() *Keeper {
	return New(Settings{
		Client: clienttest.Of(f.cluster), Name: name, Log: slog.New(slog.NewTextHandler(f.Output(), nil)),
		Timing: Timing{Validity: 24 * time.Hour, RenewBefore: 6 * time.Hour, Delay: time.Hour, Interval: time.Millisecond},
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
	s, err := f.cluster.CoreV1().Secrets(name.Namespace).Get(f.Context(), name.Name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// change changes the Secret, among controls that write too.
func (f *fixture) change(change func(*corev1.Secret)) {
	f.Helper()
	for {
		s := f.secret()
		change(s)
		_, err := f.cluster.CoreV1().Secrets(name.Namespace).Update(f.Context(), s, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			f.Fatal(err)
		}
	}
}

func (f *fixture) renew() {
	f.Helper()
	f.change(func(s *corev1.Secret) { s.Annotations = map[string]string{RenewAnnotation: "now"} })
}

// published are the certificates in the ConfigMap.
func (f *fixture) published() []*x509.Certificate {
	f.Helper()
	c, err := f.cluster.CoreV1().ConfigMaps(name.Namespace).Get(f.Context(), name.Name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	list, err := link.ParseCertificates([]byte(c.Data[CertificateKey]))
	if err != nil {
		f.Fatal(err)
	}
	return list
}

func (f *fixture) trust(k *Keeper) *link.Trust {
	f.Helper()
	trust, err := k.Trust()
	if err != nil {
		f.Fatal(err)
	}
	return trust
}

// meet connects an edge that trusts what is published with each control, with a certificate from any of
// them. It returns which authorities have signed the controls' certificates.
func (f *fixture) meet(controls ...*Keeper) (signers []string) {
	f.Helper()
	roots := link.Pool(f.published()...)
	for _, a := range controls {
		own := f.trust(a)
		if _, err := own.Certificate.Leaf.Verify(x509.VerifyOptions{DNSName: link.ServerName, Roots: roots}); err != nil {
			f.Errorf("an edge refuses a control: %v", err)
		}
		edge := f.edge(own.Signer)
		for _, b := range controls {
			usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
			if _, err := edge.Verify(x509.VerifyOptions{Roots: f.trust(b).Edges, KeyUsages: usages}); err != nil {
				f.Errorf("a control refuses an edge: %v", err)
			}
		}
		signers = append(signers, own.Signer.Certificate.SerialNumber.String())
	}
	return signers
}

func (f *fixture) edge(a *link.Authority) *x509.Certificate {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		f.Fatal(err)
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		f.Fatal(err)
	}
	edge, err := a.Edge(request, link.Identity{Name: "edge"}, time.Now(), link.EdgeValidity)
	if err != nil {
		f.Fatal(err)
	}
	return edge
}

// TestRenewal goes through a renewal step by step: in each, edges and both controls trust each other.
func TestRenewal(t *testing.T) {
	f := newFixture(t)
	a, b := f.keeper(), f.keeper()
	if _, err := a.Trust(); err == nil {
		t.Error("there is an authority before the first look")
	}
	f.look(a)
	f.look(b)
	first := f.meet(a, b)
	if first[0] != first[1] {
		t.Errorf("the controls have %v", first)
	}
	old := f.edge(f.trust(a).Signer)
	f.renew()
	for range 3 {
		f.look(a)
		f.look(b)
		if got := f.meet(a, b); !slices.Equal(got, first) {
			t.Errorf("before the next authority is published for long enough, %v sign", got)
		}
	}
	if n := len(f.published()); n != 2 {
		t.Errorf("%d certificates are published", n)
	}
	b.Timing.Delay = 0
	f.look(b)
	if got := f.meet(a, b); got[0] != first[0] || got[1] == first[0] {
		t.Errorf("after one control has changed, %v sign", got)
	}
	f.look(a)
	if got := f.meet(a, b); got[0] != got[1] || got[0] == first[0] {
		t.Errorf("after both have changed, %v sign", got)
	}
	if _, err := old.Verify(x509.VerifyOptions{Roots: f.trust(a).Edges, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("an edge with an older certificate is refused: %v", err)
	}
	// A control that starts now, and nothing else to do.
	before := f.secret().ResourceVersion
	c := f.keeper()
	f.look(c)
	f.look(a)
	f.meet(a, b, c)
	if s := f.secret(); s.ResourceVersion != before || len(s.Data) != 2 || len(s.Annotations) != 0 {
		t.Errorf("the Secret has changed, or has %d keys", len(s.Data))
	}
}

// TestEnd: an authority is renewed before its end, and is not trusted for longer.
func TestEnd(t *testing.T) {
	f := newFixture(t)
	k := f.keeper()
	k.Timing.Delay = 0
	f.look(k)
	first := f.published()[0]
	k.Timing.RenewBefore = 25 * time.Hour
	f.look(k)
	k.Timing.RenewBefore = time.Hour
	f.look(k)
	if list := f.published(); len(list) != 2 || list[0].Equal(first) || !list[1].Equal(first) {
		t.Errorf("published are %d certificates", len(list))
	}
	now := first.NotAfter.Add(-time.Minute)
	if got := read(f.secret(), now).trusted(); len(got) != 2 {
		t.Errorf("before its end, %d are trusted", len(got))
	}
	ended, err := link.NewAuthority(time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	f.change(func(s *corev1.Secret) {
		s.Data[CertificateKey] = append(s.Data[CertificateKey], link.EncodeCertificates(ended.Certificate)...)
	})
	f.look(k)
	if slices.ContainsFunc(f.published(), ended.Certificate.Equal) {
		t.Error("one that has ended is published")
	}
}

// TestControls: controls that run at once agree on one authority, through renewals, and meet edges all the time.
func TestControls(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	controls := make([]*Keeper, 4)
	for i := range controls {
		controls[i] = f.keeper()
		controls[i].Timing.Delay = 20 * time.Millisecond
		running.Go(func() { controls[i].Run(ctx) })
	}
	agreed := func(before string) string {
		for {
			seen := map[string]bool{}
			for _, k := range controls {
				serial := ""
				if trust, err := k.Trust(); err == nil {
					serial = trust.Signer.Certificate.SerialNumber.String()
				}
				seen[serial] = true
			}
			for serial := range seen {
				if len(seen) == 1 && serial != before {
					return serial
				}
			}
			time.Sleep(time.Millisecond)
		}
	}
	serial := agreed("")
	for range 3 {
		f.renew()
		serial = agreed(serial)
		f.meet(controls...)
	}
}

// TestStaleControl: one that was stopped between reading and writing publishes nothing.
func TestStaleControl(t *testing.T) {
	f := newFixture(t)
	a, b := f.keeper(), f.keeper()
	none, err := a.readConfigMap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.look(b)
	if err := a.publish(t.Context(), none, []byte("old")); !kept.IsOvertaken(err) {
		t.Errorf("created: %v", err)
	}
	shown, err := a.readConfigMap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.renew()
	f.look(b)
	if err := a.publish(t.Context(), shown, []byte("old")); !kept.IsOvertaken(err) {
		t.Errorf("updated: %v", err)
	}
	if n := len(f.published()); n != 2 {
		t.Errorf("%d certificates are published", n)
	}
}

// TestRepairs: what is wrong with the Secret or the ConfigMap is repaired.
func TestRepairs(t *testing.T) {
	f := newFixture(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, ResourceVersion: "1"}, Data: map[string]string{"more": "x"},
	})
	k := f.keeper()
	f.look(k)
	other, err := link.NewAuthority(time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		change func(*corev1.Secret)
		trusts bool // the authority before
	}{
		"no data":       {func(s *corev1.Secret) { s.Data = nil }, false},
		"no key":        {func(s *corev1.Secret) { delete(s.Data, keyKey) }, true},
		"another's key": {func(s *corev1.Secret) { s.Data[CertificateKey] = link.EncodeCertificates(other.Certificate) }, false},
		"rubbish":       {func(s *corev1.Secret) { s.Data[CertificateKey] = []byte("x") }, false},
	} {
		before := f.meet(k)[0]
		f.change(c.change)
		f.look(k)
		if f.meet(k)[0] == before {
			t.Errorf("%s: the authority is the same", what)
		}
		is := func(c *x509.Certificate) bool { return c.SerialNumber.String() == before }
		if got := slices.ContainsFunc(f.published(), is); got != c.trusts {
			t.Errorf("%s: the one before is trusted: %t", what, got)
		}
	}
	maps := f.cluster.CoreV1().ConfigMaps(name.Namespace)
	c, err := maps.Get(t.Context(), name.Name, metav1.GetOptions{})
	if err != nil || c.Data["more"] != "x" {
		t.Fatalf("another key of the ConfigMap is gone: %v, %v", c.Data, err)
	}
	c.Data = nil
	if _, err := maps.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.look(k)
	f.meet(k)
}

// TestForbidden: an authority that is there is used without permissions to write, and the error says what is missing. A next
// one does not sign before it is published.
func TestForbidden(t *testing.T) {
	f := newFixture(t)
	f.look(f.keeper())
	forbidden := map[string]bool{}
	f.cluster.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		what := action.GetVerb() + " " + action.GetResource().Resource
		return forbidden[what], nil, apierrors.NewForbidden(schema.GroupResource{}, name.Name, fmt.Errorf("%s", what))
	})
	f.renew()
	for _, what := range []string{"update secrets", "get configmaps", "update configmaps"} {
		forbidden = map[string]bool{what: true}
		k := f.keeper()
		k.Timing.Delay = 0
		for range 3 {
			if err := k.look(t.Context()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: the error is %v", what, err)
			}
		}
		own := f.trust(k)
		forbidden = nil
		if list := f.published(); !list[0].Equal(own.Signer.Certificate) {
			t.Errorf("%s: another authority signs than the one that is published", what)
		}
	}
	k := f.keeper()
	k.Timing.Delay = 0
	before := f.published()[0]
	f.look(k)
	f.look(k)
	if bytes.Equal(f.published()[0].Raw, before.Raw) {
		t.Error("the next authority does not sign")
	}
}
