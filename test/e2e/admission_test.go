package e2e_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/test/e2e/clustertest"
)

const vhost = "nginx.ingress.kubernetes.io/upstream-vhost"

// A warningList keeps the warnings that a client prints.
type warningList struct {
	mu   sync.Mutex
	list []string
}

func (w *warningList) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warningList) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

// registerWebhook has the API server ask Headgate about Ingresses of the test's namespace.
// The configuration has the name of the namespace.
func (h *headgate) registerWebhook(client admissionregistrationv1.WebhookClientConfig, policy admissionregistrationv1.FailurePolicyType) {
	h.t.Helper()
	none := admissionregistrationv1.SideEffectClassNone
	configurations := h.cluster.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	must[*admissionregistrationv1.ValidatingWebhookConfiguration](h)(configurations.Create(h.t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: h.class},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.nginx.ingress.kubernetes.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &policy,
			ClientConfig:      client,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": h.class}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"networking.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"ingresses"}},
			}},
		}},
	}, metav1.CreateOptions{}))
	h.t.Cleanup(func() { _ = configurations.Delete(context.Background(), h.class, metav1.DeleteOptions{}) })
}

// reviewed is nil if the API server refuses a bad Ingress, by the webhook, and accepts a
// good one. It creates none.
func (h *headgate) reviewed(ctx context.Context) error {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	ingresses := h.cluster.Client().NetworkingV1().Ingresses(h.class)
	good := h.ingress("reviewed", h.host("reviewed"), "/", "web", "")
	bad := good.DeepCopy()
	bad.Annotations = map[string]string{vhost: "a b"}
	if _, err := ingresses.Create(ctx, bad, dry); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "denied the request: "+vhost+`: invalid value "a b": must be`) {
		return fmt.Errorf("a bad value: %v", err)
	}
	if _, err := ingresses.Create(ctx, good, dry); err != nil {
		return fmt.Errorf("a good Ingress: %w", err)
	}
	return nil
}

// writeWebhookCertificate writes a certificate for the webhook, and returns its CA.
func writeWebhookCertificate(t *testing.T, dir string, authority *pkitest.Authority) (ca string) {
	t.Helper()
	pair := authority.IssueAs(&x509.Certificate{IPAddresses: []net.IP{net.ParseIP(clustertest.NodeAddress)}}, "webhook.test")
	for name, text := range map[string]string{"cert": pair.Certificate, "key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pkitest.PEM(authority.Intermediate) + pkitest.PEM(authority.Root)
}

// TestAdmission has the API server ask: Ingresses are refused, accepted, and accepted with
// warnings; the certificate is renewed; and failurePolicy holds when Headgate is away.
func TestAdmission(t *testing.T) {
	authority, dir := pkitest.New(t), t.TempDir()
	ca := writeWebhookCertificate(t, dir, authority)
	h := newHeadgate(t, "--validating-webhook", ":8443",
		"--validating-webhook-certificate", filepath.Join(dir, "cert"), "--validating-webhook-key", filepath.Join(dir, "key"))
	// The test replaces the files of the certificate, and the API server calls one address
	// all the time.
	h.asProcess()
	h.createClass(h.class, controllerClass(h.class))
	h.start()
	h.awaitReady()
	h.createBackend("web")
	url := "https://" + clustertest.NodeAddress + ":8443/networking/v1/ingresses"
	h.registerWebhook(admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: []byte(ca)}, admissionregistrationv1.Fail)
	var warnings warningList
	config := h.cluster.Config()
	config.WarningHandler = &warnings
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ingresses := client.NetworkingV1().Ingresses(h.class)
	with := func(name, value string) *networkingv1.Ingress {
		ing := h.ingress(name, h.host(name), "/", "web", "")
		if value != "" {
			ing.Annotations = map[string]string{vhost: value}
		}
		return ing
	}
	// API servers learn of the webhook after a while.
	clustertest.Eventually(t, timeout, h.reviewed)
	warnings.take()
	if _, err := ingresses.Create(t.Context(), with("good", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if list := warnings.take(); len(list) > 0 {
		t.Errorf("warnings %q", list)
	}
	h.await("http://"+h.host("good")+"/", from("web"))
	odd := with("odd", "")
	odd.Annotations = map[string]string{"nginx.ingress.kubernetes.io/proxy-read-timeout": "soon"}
	if _, err := ingresses.Create(t.Context(), odd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if list := warnings.take(); len(list) != 1 || !strings.Contains(list[0], `invalid value "soon"`) {
		t.Errorf("warnings %q", list)
	}
	same := with("same", "")
	same.Spec.Rules[0].Host = h.host("good")
	if _, err := ingresses.Create(t.Context(), same, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "is in ingress/"+h.class+"/good already") {
		t.Errorf("the same path: %v", err)
	}
	patch := func(text string) error {
		_, err := ingresses.Patch(t.Context(), "good", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	if err := patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"a b"}}}`, vhost)); !apierrors.IsBadRequest(err) {
		t.Errorf("a bad update: %v", err)
	}
	if err := patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"x.test"}}}`, vhost)); err != nil {
		t.Errorf("a good update: %v", err)
	}
	foreign, other := with("foreign", "a b"), "other"
	foreign.Spec.IngressClassName = &other
	if _, err := ingresses.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Errorf("another class: %v", err)
	}

	writeWebhookCertificate(t, dir, authority)
	if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("with another certificate: %v", err)
	}
	h.stop()
	if err := patch(`{"metadata":{"labels":{"a":"c"}}}`); !apierrors.IsInternalError(err) {
		t.Errorf("without Headgate: %v", err)
	}
	h.start()
	h.awaitReady()
	if err := patch(`{"metadata":{"labels":{"a":"c"}}}`); err != nil {
		t.Errorf("with Headgate again: %v", err)
	}
	h.want("http://"+h.host("bad")+"/", status(http.StatusNotFound))
}
