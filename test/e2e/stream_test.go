package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// streamPort is where Headgate serves the TCP and the UDP service of TestStreams.
const streamPort = "4000"

// streamNetworks are the ways to the pods of TestStreams: by a TCP service, by a UDP service, and by
// TLS passthrough.
func streamNetworks() []string { return []string{"tcp", "udp", "tls"} }

// TCP, UDP and TLS passthrough follow their pods. Scaling and a rolling update lose no connection
// and no client of UDP, since a pod still serves during its preStop hook, and a connection ends
// only with its pod.
func TestStreams(t *testing.T) {
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	r := rolling{headgate: h}
	r.createStreams()
	h.args = append(h.args, "--tcp-services-configmap", h.class+"/streams", "--udp-services-configmap", h.class+"/streams", "--enable-ssl-passthrough")
	h.createClass(h.class, controllerClass(h.class))
	h.start()
	h.awaitReady()
	h.awaitStreamPods(1)
	l := h.newLoad(h.address)
	for _, network := range streamNetworks() {
		for range 2 {
			l.repeat(2*pace, func() error {
				_, err := h.askStream(network)
				return err
			}, func() {})
		}
	}
	l.awaitMore(50)
	h.scale("web", 3)
	h.awaitStreamPods(3)

	r.remember()
	ends := make(chan error, 8)
	for i := range cap(ends) {
		go func() { ends <- r.untilConnectionEnds([]string{"tcp", "tls"}[i%2]) }()
	}
	if err := h.cluster.Roll(t.Context(), h.class, "web"); err != nil {
		t.Fatal(err)
	}
	h.awaitGone("web", r.names())
	h.awaitStreamPods(3)
	h.scale("web", 1)
	clustertest.Eventually(t, podTimeout, func(context.Context) error {
		if n := len(h.pods("web")); n != 1 {
			return fmt.Errorf("there are %d pods", n)
		}
		return nil
	})
	h.awaitStreamPods(1)
	l.awaitMore(100)
	l.wantNoFailure()
	for range cap(ends) {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	h.wantNoReload()
}

// createStreams creates one pod and its TCP and UDP service.
func (r *rolling) createStreams() {
	r.t.Helper()
	deployment := clustertest.BackendDeployment(r.class, "web", 1, preStop)
	toleratingSlowness(deployment)
	if err := r.cluster.CreateBackend(r.t.Context(), deployment); err != nil {
		r.t.Fatal(err)
	}
	core := r.cluster.Client().CoreV1()
	must[*corev1.Service](r.headgate)(core.Services(r.class).Create(r.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "streams"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{
			{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 1, TargetPort: intstr.FromInt32(9000)},
			{Name: "udp", Protocol: corev1.ProtocolUDP, Port: 1, TargetPort: intstr.FromInt32(9000)},
			{Name: "tls", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(9443)},
		}},
	}, metav1.CreateOptions{}))
	must[*corev1.ConfigMap](r.headgate)(core.ConfigMaps(r.class).Create(r.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "streams"}, Data: map[string]string{"4000": r.class + "/streams:1"},
	}, metav1.CreateOptions{}))
	ing := r.ingress("streams", r.host("streams"), "/", "streams", "")
	ing.Annotations = map[string]string{"nginx.ingress.kubernetes.io/ssl-passthrough": "true"}
	ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 443
	r.createIngress(ing)
}

// dialStream connects to a pod in one of the ways.
func (h *headgate) dialStream(ctx context.Context, network string) (net.Conn, error) {
	if network != "tls" {
		return h.cluster.Dial(ctx, network, h.at(streamPort))
	}
	c, err := h.cluster.Dial(ctx, "tcp", h.at(httpsPort))
	if err != nil {
		return nil, err
	}
	secure := tls.Client(c, &tls.Config{ServerName: h.host("streams"), InsecureSkipVerify: true})
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return secure, nil
}

// The kernel may drop a datagram. As clients of UDP do, askStream sends it again if no answer
// comes for a time.
const (
	datagramTimeout = 3 * time.Second
	datagramTries   = 5
)

// askStream sends a message over a new connection, or in a datagram, which must come back. It
// returns the name of the pod.
func (h *headgate) askStream(network string) (pod string, err error) {
	if network != "udp" {
		return h.askStreamOnce(network, answerTimeout)
	}
	for try := range datagramTries {
		if pod, err = h.askStreamOnce(network, datagramTimeout); err == nil {
			break
		}
		h.t.Logf("try %d: %v", try+1, err)
	}
	return pod, err
}

func (h *headgate) askStreamOnce(network string, limit time.Duration) (pod string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := h.dialStream(ctx, network)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return exchangeNamed(c, bufio.NewReader(c), true, limit)
}

// exchangeNamed sends a message, which must come back, the first time with the name of the pod.
func exchangeNamed(c net.Conn, reader *bufio.Reader, first bool, limit time.Duration) (pod string, err error) {
	const message = "hello\n"
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, message); err != nil {
		return "", err
	}
	if first {
		if pod, err = reader.ReadString('\n'); err != nil {
			return "", err
		}
		pod = pod[:len(pod)-1]
	}
	if back, err := reader.ReadString('\n'); err != nil || back != message {
		return pod, fmt.Errorf("%s sent back %q: %w", pod, back, err)
	}
	return pod, nil
}

// awaitStreamPods waits until exactly so many pods answer, in each way.
func (h *headgate) awaitStreamPods(want int) {
	h.t.Helper()
	clustertest.Eventually(h.t, timeout, func(context.Context) error {
		for _, network := range streamNetworks() {
			pods := map[string]int{}
			for range 8 * want {
				pod, err := h.askStream(network)
				if err != nil {
					return err
				}
				pods[pod]++
			}
			if len(pods) != want {
				return fmt.Errorf("these pods answer over %s: %v, want %d", network, pods, want)
			}
		}
		return nil
	})
}

// untilConnectionEnds has a connection that must end only with its pod.
func (r *rolling) untilConnectionEnds(network string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	c, err := r.dialStream(ctx, network)
	if err != nil {
		return err
	}
	defer c.Close()
	reader := bufio.NewReader(c)
	pod, err := exchangeNamed(c, reader, true, answerTimeout)
	for began := time.Now(); err == nil; time.Sleep(5 * pace) {
		if time.Since(began) > 2*podTimeout {
			return fmt.Errorf("a connection to %s does not end", pod)
		}
		_, err = exchangeNamed(c, reader, false, answerTimeout)
	}
	if gone := r.gone(pod); gone != nil {
		return errors.Join(fmt.Errorf("a connection has ended before its pod: %w", err), gone)
	}
	return nil
}
