package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// A rolling update of two pods behind a Service, from the image of the commit before to that of this
// one, fails no request over HTTP/1.1, HTTP/2, HTTP/3, gRPC and TCP. Connections that go on live
// until the time limit.
func TestRollingUpdateOfHeadgate(t *testing.T) {
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	before, now := previousBuild(t).load(t, h.cluster), headgateBuild.load(t, h.cluster)
	h.createClass(h.class, controllerClass(h.class))
	r := rolling{headgate: h}
	r.createStreams()
	host := r.createRoute("web", nil)
	r.createRoute("grpc", map[string]string{"backend-protocol": "GRPC"})
	t.Cleanup(func() {
		if t.Failed() {
			h.logPods("headgate")
		}
	})
	h.address = h.runInPods(inPods{
		replicas: 2, image: before.controller,
		options: map[string]string{"use-http3": "true"}, flags: []string{"--tcp-services-configmap", h.class + "/streams"},
	})
	h.awaitAddress(h.address, host)
	r.awaitStream(h.overHTTP2)
	r.awaitStream(h.overHTTP3)
	old := h.podsOf("headgate")

	l := h.startLoad(host)
	for number := range 2 {
		l.add(client{host: host, fresh: true, secure: number == 1}, true, 2*pace)
		// Their connections idle, but not for the whole grace period.
		l.add(client{host: host, idle: rolloutGrace * 4 / 5}, number == 1, rolloutGrace/3)
		r.addRequests(l, h.overHTTP2())
		r.addRequests(l, h.overHTTP3())
		r.addStreams(l, h.overHTTP2())
		r.addStreams(l, h.overHTTP3())
		l.repeat(2*pace, func() error {
			_, err := h.askStream("tcp")
			return err
		}, func() {})
	}
	lasting := r.startLasting("a pod")
	for _, pod := range old {
		direct := *h
		direct.address = pod.Status.PodIP
		lasting = append(lasting, rolling{headgate: &direct}.startLasting(pod.Name)...)
	}
	began := time.Now()
	h.setImage("headgate", now.controller)
	deleted := h.awaitDeleted(old)
	t.Logf("the old pods were gone after %v", time.Since(began).Round(time.Millisecond))
	l.awaitMore(500)
	l.wantNoFailure()
	events := must[*corev1.EventList](h)(h.cluster.Client().CoreV1().Events(h.class).List(t.Context(), metav1.ListOptions{}))
	for _, e := range events.Items {
		if e.Reason == "FailedPreStopHook" {
			t.Errorf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
	for _, c := range lasting {
		end := <-c.ended
		since, ok := deleted[c.pod]
		if !ok {
			// Behind the Service, it was one of them.
			since = slices.MinFunc(slices.Collect(maps.Values(deleted)), time.Time.Compare)
		}
		lived := end.at.Sub(since).Round(time.Millisecond)
		t.Logf("%s of %s lived for %v", c.kind, c.pod, lived)
		// The API server counts in whole seconds.
		if lived < rolloutGrace+rolloutLimit-2*time.Second {
			t.Errorf("%s of %s lived for %v: %v", c.kind, c.pod, lived, end.err)
		}
	}
}

// awaitDeleted waits until pods are gone, and returns when each of them was deleted.
func (h *headgate) awaitDeleted(old []corev1.Pod) map[string]time.Time {
	h.t.Helper()
	deleted := map[string]time.Time{}
	clustertest.Eventually(h.t, podTimeout, func(ctx context.Context) error {
		var left error
		for _, pod := range old {
			now, err := h.cluster.Client().CoreV1().Pods(h.class).Get(ctx, pod.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			// The kubelet deletes it once more at the end, without a grace period.
			if err == nil && now.DeletionTimestamp != nil && deleted[pod.Name].IsZero() {
				deleted[pod.Name] = now.DeletionTimestamp.Add(-time.Duration(*now.DeletionGracePeriodSeconds) * time.Second)
			}
			left = fmt.Errorf("pod %s is still there: %v", pod.Name, err)
		}
		return left
	})
	if len(deleted) != len(old) {
		h.t.Fatalf("the pods were deleted unnoticed, but for %v", deleted)
	}
	return deleted
}

// setImage has a Deployment replace its pods by those of another image.
func (h *headgate) setImage(name, image string) {
	h.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, name, image)
	if _, err := h.cluster.Client().AppsV1().Deployments(h.class).Patch(h.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// A lasting is a connection, or a stream on one, that has messages sent back until it ends.
type lasting struct {
	kind, pod string
	ended     chan lastingEnd
}

type lastingEnd struct {
	at  time.Time
	err error
}

// startLasting starts some of each protocol, and waits until each had a message sent back. The name
// is that of the pod that serves them.
func (r rolling) startLasting(pod string) []lasting {
	r.t.Helper()
	var all []lasting
	started := make(chan struct{})
	for range 2 {
		for kind, run := range map[string]func(started func()) error{
			"a WebSocket":             r.keepWebSocket,
			"a TCP connection":        r.keepConnection,
			"a gRPC stream by HTTP/2": func(started func()) error { return r.keepStream(r.overHTTP2(), started) },
			"a gRPC stream by HTTP/3": func(started func()) error { return r.keepStream(r.overHTTP3(), started) },
		} {
			c := lasting{kind, pod, make(chan lastingEnd, 1)}
			go func() {
				err := run(func() { started <- struct{}{} })
				c.ended <- lastingEnd{time.Now(), err}
			}()
			all = append(all, c)
		}
	}
	for range all {
		select {
		case <-started:
		case <-time.After(timeout):
			r.t.Fatal("a connection that lasts has not started")
		}
	}
	return all
}

func (r *rolling) keepWebSocket(started func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*podTimeout)
	defer cancel()
	connection, err := r.cluster.Dial(ctx, "tcp", r.at(httpPort))
	if err != nil {
		return err
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: "+r.host("web")+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); err != nil {
		return err
	}
	reader := bufio.NewReader(connection)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("a WebSocket was answered %s", answer.Status)
	}
	for first := true; ; first = false {
		if err := echoed(connection, reader); err != nil {
			return err
		}
		if first {
			started()
		}
		time.Sleep(10 * pace)
	}
}

// echoed sends a message of a WebSocket, which must come back.
func echoed(connection net.Conn, reader io.Reader) error {
	const message = "hello"
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	// A text frame, masked by zeros.
	if _, err := io.WriteString(connection, "\x81\x85\x00\x00\x00\x00"+message); err != nil {
		return err
	}
	back := make([]byte, 2+len(message))
	if _, err := io.ReadFull(reader, back); err != nil || string(back) != "\x81\x05"+message {
		return fmt.Errorf("%q was sent back: %w", back, err)
	}
	return nil
}

// keepConnection keeps a connection to the TCP service.
func (r *rolling) keepConnection(started func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	connection, err := r.dialStream(ctx, "tcp")
	if err != nil {
		return err
	}
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for first := true; ; first = false {
		if _, err := exchangeNamed(connection, reader, first, timeout); err != nil {
			return err
		}
		if first {
			started()
		}
		time.Sleep(10 * pace)
	}
}

// keepStream keeps a gRPC stream.
func (r *rolling) keepStream(client httpClient, started func()) error {
	defer client.end()
	ctx, cancel := context.WithTimeout(context.Background(), 2*podTimeout)
	defer cancel()
	_, err := r.stream(ctx, client, func(sent int) bool {
		if sent == 1 {
			started()
		}
		return true
	})
	return err
}
