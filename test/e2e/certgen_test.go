package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// admissionName is the name of the webhook's objects in the test's namespace.
const admissionName = "headgate-admission"

// callWebhook has the API server call the webhook by a Service.
func (h *headgate) callWebhook(policy admissionregistrationv1.FailurePolicyType, ports ...int32) {
	h.t.Helper()
	must[*corev1.Service](h)(h.cluster.Client().CoreV1().Services(h.class).Create(h.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: admissionName},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 443}}},
	}, metav1.CreateOptions{}))
	for _, port := range ports {
		slice := h.slice(admissionName, endpoint{clustertest.NodeAddress, port})
		slice.Name = webhookSlice(port)
		must[*discoveryv1.EndpointSlice](h)(h.cluster.Client().DiscoveryV1().EndpointSlices(h.class).Create(h.t.Context(), slice, metav1.CreateOptions{}))
	}
	path := "/networking/v1/ingresses"
	h.registerWebhook(admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: h.class, Name: admissionName, Path: &path},
	}, policy)
}

// webhookSlice is the name of the EndpointSlice of one replica.
func webhookSlice(port int32) string { return admissionName + "-" + strconv.Itoa(int(port)) }

// runJob runs kube-webhook-certgen as the Helm chart of ingress-nginx does.
func (h *headgate) runJob(name string, args ...string) {
	h.t.Helper()
	container := corev1.Container{
		Name: name, Image: headgateBuild.load(h.t, h.cluster).certgen, ImagePullPolicy: corev1.PullNever, Args: args,
		Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
		}}},
		SecurityContext: restricted(65532, 65532),
	}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure, ServiceAccountName: "headgate", Containers: []corev1.Container{container}}
	jobs := h.cluster.Client().BatchV1().Jobs(h.class)
	must[*batchv1.Job](h)(jobs.Create(h.t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: spec,
		}},
	}, metav1.CreateOptions{}))
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.logPods(name)
		}
	})
	h.awaitJob(name)
}

// awaitJob waits until a Job has succeeded.
func (h *headgate) awaitJob(name string) {
	h.t.Helper()
	clustertest.Eventually(h.t, podTimeout, func(ctx context.Context) error {
		job, err := h.cluster.Client().BatchV1().Jobs(h.class).Get(ctx, name, metav1.GetOptions{})
		if err == nil && job.Status.Succeeded == 0 {
			err = fmt.Errorf("the Job %s has not succeeded: %+v", name, job.Status)
		}
		return err
	})
}

// TestCertgenJobs: the Jobs of ingress-nginx's chart, with its arguments and its roles, make
// the webhook work, and change nothing the second time.
func TestCertgenJobs(t *testing.T) {
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	// The webhook has its certificate from a file that the test writes.
	h.asProcess()
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	h.actAsServiceAccount(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create"}},
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"get", "update"}},
	)
	// The Jobs are this ServiceAccount, and Headgate is not.
	h.account = ""
	h.callWebhook(admissionregistrationv1.Ignore, 8444)
	create := []string{
		"create", "--host=" + admissionName + "," + admissionName + ".$(POD_NAMESPACE).svc", "--namespace=$(POD_NAMESPACE)", "--secret-name=" + admissionName,
	}
	h.runJob("create", create...)
	secret := h.webhookSecret(t.Context())
	dir := t.TempDir()
	for _, key := range []string{"cert", "key"} {
		if err := os.WriteFile(filepath.Join(dir, key), secret.Data[key], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.args = append(h.args, "--validating-webhook=:8444",
		"--validating-webhook-certificate="+filepath.Join(dir, "cert"), "--validating-webhook-key="+filepath.Join(dir, "key"))
	h.start()
	h.awaitReady()
	// Without the CA and with the policy Ignore, the webhook has no effect.
	if err := h.reviewed(t.Context()); err == nil {
		t.Error("the webhook works before the second Job")
	}
	h.runJob("patch", "patch", "--webhook-name="+h.class, "--namespace=$(POD_NAMESPACE)", "--patch-mutating=false",
		"--secret-name="+admissionName, "--patch-failure-policy=Fail")
	clustertest.Eventually(t, timeout, h.reviewed)
	h.runJob("create-again", create...)
	if again := h.webhookSecret(t.Context()); again.ResourceVersion != secret.ResourceVersion {
		t.Error("the Secret was changed by the second run")
	}
	c := must[*admissionregistrationv1.ValidatingWebhookConfiguration](h)(
		h.cluster.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), h.class, metav1.GetOptions{}))
	if policy := *c.Webhooks[0].FailurePolicy; policy != admissionregistrationv1.Fail {
		t.Errorf("the failure policy is %s", policy)
	}
}

func (h *headgate) webhookSecret(ctx context.Context) *corev1.Secret {
	h.t.Helper()
	return must[*corev1.Secret](h)(h.cluster.Client().CoreV1().Secrets(h.class).Get(ctx, admissionName, metav1.GetOptions{}))
}

// caBundle is what API servers trust the webhook by.
func (h *headgate) caBundle(ctx context.Context) ([]byte, error) {
	c, err := h.cluster.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, h.class, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return c.Webhooks[0].ClientConfig.CABundle, nil
}

// shake connects to one replica as an API server does, and returns the serial number of its
// certificate.
func (h *headgate) shake(ctx context.Context, port int32, bundle []byte) (serial string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	plain, err := h.cluster.Dial(ctx, "tcp", net.JoinHostPort(clustertest.NodeAddress, strconv.Itoa(int(port))))
	if err != nil {
		return "", err
	}
	defer plain.Close()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(bundle)
	connection := tls.Client(plain, &tls.Config{RootCAs: trusted, ServerName: admissionName + "." + h.class + ".svc"})
	if err := connection.HandshakeContext(ctx); err != nil {
		return "", err
	}
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// answers is nil if a replica answers reviews: it has loaded everything.
func (h *headgate) answers(ctx context.Context, port int32) error {
	address := net.JoinHostPort(clustertest.NodeAddress, strconv.Itoa(int(port)))
	transport := h.cluster.Transport(address)
	transport.DisableKeepAlives, transport.TLSClientConfig = true, anyCertificate()
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"` + h.class +
		`","kind":{"group":"networking.k8s.io","version":"v1","kind":"Ingress"},"object":{"spec":{"ingressClassName":"` + h.class + `"}}}}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the replica answers %s", response.Status)
	}
	return nil
}

// trusted returns the serial number of a replica's certificate, which API servers trust.
// If the CA bundle has changed meanwhile, the newer one may count.
func (h *headgate) trusted(ctx context.Context, port int32) (string, error) {
	bundle, err := h.caBundle(ctx)
	if err != nil {
		return "", err
	}
	serial, err := h.shake(ctx, port, bundle)
	if err == nil {
		return serial, nil
	}
	newer, unread := h.caBundle(ctx)
	if unread != nil || bytes.Equal(newer, bundle) {
		return "", err
	}
	return h.shake(ctx, port, newer)
}

// agreed is the serial number of both replicas' certificate, another one than before.
func (h *headgate) agreed(before string, ports ...int32) (agreed string) {
	h.t.Helper()
	clustertest.Eventually(h.t, 3*timeout, func(ctx context.Context) error {
		var serials []string
		for _, port := range ports {
			serial, err := h.trusted(ctx, port)
			if err != nil {
				return err
			}
			serials = append(serials, serial)
		}
		agreed = serials[0]
		for _, serial := range serials {
			if serial != agreed || serial == before {
				return fmt.Errorf("the replicas have the certificates %v", serials)
			}
		}
		return nil
	})
	return agreed
}

// TestSelfSignedWebhook: two replicas that start at once, with the permissions that are
// printed, serve one certificate that they have made, and renew it under load: each review
// is answered, and each replica's certificate is trusted all the time.
func TestSelfSignedWebhook(t *testing.T) {
	const one, two = 8444, 8445
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	// The Service of the webhook has its endpoints before the replicas start.
	h.asProcess()
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	h.callWebhook(admissionregistrationv1.Fail, one, two)
	h.env = []string{"POD_NAMESPACE=" + h.class, "POD_NAME=one"}
	h.args = append(h.args, "--webhook-self-signed", "--webhook-configuration", h.class, "--disable-leader-election", "--validating-webhook", fmt.Sprintf(":%d", one))
	h.actAsPrinted()
	other := h.replica("two", "192.0.2.1")
	other.args = append(other.args, "--validating-webhook", fmt.Sprintf(":%d", two))
	h.start()
	other.start()
	first := h.agreed("", one, two)
	clustertest.Eventually(t, 2*timeout, h.reviewed)
	for _, port := range []int32{one, two} {
		clustertest.Eventually(t, 2*timeout, func(ctx context.Context) error { return h.answers(ctx, port) })
	}

	l := &load{h: h, stop: make(chan struct{})}
	t.Cleanup(l.end)
	for range 4 {
		l.repeat(10*pace, func() error { return h.reviewed(context.Background()) }, func() {})
	}
	for _, port := range []int32{one, two} {
		l.repeat(10*pace, func() error {
			_, err := h.trusted(context.Background(), port)
			return err
		}, func() {})
	}
	l.awaitMore(50)
	began := time.Now()
	must[*corev1.Secret](h)(h.cluster.Client().CoreV1().Secrets(h.class).Patch(t.Context(), admissionName, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"headgate.io/renew":"now"}}}`), metav1.PatchOptions{}))
	second := h.agreed(first, one, two)
	t.Logf("the certificate was renewed in %v", time.Since(began).Round(time.Millisecond))
	l.awaitMore(50)
	l.wantNoFailure()

	// The API server has to connect to the other replica, by the new certificate.
	slices := h.cluster.Client().DiscoveryV1().EndpointSlices(h.class)
	if err := slices.Delete(t.Context(), webhookSlice(one), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.stop()
	clustertest.Eventually(t, timeout, h.reviewed)
	if serial := h.agreed("", two); serial != second {
		t.Error("the other replica has another certificate")
	}
}
