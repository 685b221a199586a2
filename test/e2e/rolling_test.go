package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

const (
	// preStop is how long a deleted pod still serves.
	preStop = 5 * time.Second
	// A short stream takes less time than pods have to end after SIGTERM.
	shortStream = time.Second
)

// A rolling update loses no request, since a pod still serves during its preStop
// hook. Its sessions stay for that time, and a gRPC stream until the pod ends.
func TestRollingUpdateUnderLoad(t *testing.T) {
	h := startHeadgate(t)
	h.cluster.NeedPods(t)
	r := rolling{headgate: h}
	r.create()
	// The profile of gRPC has taken one.
	before := h.counts(reloads)[reloads]
	l := h.startLoad(h.host("web"))
	for range 2 {
		r.addRequests(l, r.overHTTP2())
		r.addStreams(l, r.overHTTP2())
	}
	var sessions []*session
	for range 6 {
		sessions = append(sessions, r.addSession(l, "persistent"), r.addSession(l, "balanced"))
	}
	ends := make(chan error, 3)
	for range cap(ends) {
		go func() { ends <- r.untilGone() }()
	}
	l.awaitMore(100)

	if err := h.cluster.Roll(t.Context(), h.class, "web"); err != nil {
		t.Fatal(err)
	}
	// Wait until the old pods are gone, so that every connection that they cut is
	// noticed.
	h.awaitGone("web", r.names())
	l.awaitMore(500)
	l.wantNoFailure()
	if n := h.counts(reloads)[reloads]; n != before {
		t.Errorf("%d reloads", n-before)
	}
	moves := map[string]int{}
	for _, s := range sessions {
		if err := s.ask(); err != nil || s.moves == 0 || r.old[s.pod] != "" {
			t.Errorf("a %s session moved %d times, and is at %s: %v", s.mode, s.moves, s.pod, err)
		}
		moves[s.mode] += s.moves
	}
	for range cap(ends) {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	t.Logf("sessions moved: %v", moves)
}

// A rolling is an application whose pods are replaced.
type rolling struct {
	*headgate
	// old are the addresses of the first pods, by name.
	old map[string]string
}

// create starts the pods and waits until they are served: at one host without sessions, at
// one with gRPC, and at two with sessions. Sessions are a matter of the backend, so each of
// these has a Service of its own.
func (r *rolling) create() {
	r.t.Helper()
	deployment := clustertest.BackendDeployment(r.class, "web", 3, preStop)
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one}
	toleratingSlowness(deployment)
	if err := r.cluster.CreateBackend(r.t.Context(), deployment); err != nil {
		r.t.Fatal(err)
	}
	for name, annotations := range map[string]map[string]string{
		"web": nil, "grpc": {"backend-protocol": "GRPC"},
		"persistent": {"affinity": "cookie", "affinity-mode": "persistent"}, "balanced": {"affinity": "cookie"},
	} {
		if host := r.createRoute(name, annotations); name != "grpc" {
			r.await("http://"+host+"/", status(http.StatusOK))
		}
	}
	r.awaitStream(r.overHTTP2)
	r.remember()
}

// createRoute creates an Ingress for a host, and unless it is named web, a Service of that name for
// the same pods.
func (r *rolling) createRoute(name string, annotations map[string]string) (host string) {
	r.t.Helper()
	if name != "web" {
		service := clustertest.BackendService(r.class, "web")
		service.Name = name
		must[*corev1.Service](r.headgate)(r.cluster.Client().CoreV1().Services(r.class).Create(r.t.Context(), service, metav1.CreateOptions{}))
	}
	// Without a certificate of its own a host answers over both protocols.
	ing := r.ingress(name, r.host(name), "/", name, "")
	ing.Annotations = map[string]string{}
	for annotation, value := range annotations {
		ing.Annotations["nginx.ingress.kubernetes.io/"+annotation] = value
	}
	r.createIngress(ing)
	return r.host(name)
}

// awaitStream waits until gRPC is served.
func (r *rolling) awaitStream(newClient func() httpClient) {
	r.t.Helper()
	clustertest.Eventually(r.t, timeout, func(ctx context.Context) error {
		client := newClient()
		defer client.end()
		_, err := r.stream(ctx, client, func(int) bool { return false })
		return err
	})
}

// toleratingSlowness has only a pod be not ready that has ended, however slow the machine is.
func toleratingSlowness(deployment *appsv1.Deployment) {
	probe := deployment.Spec.Template.Spec.Containers[0].ReadinessProbe
	probe.TimeoutSeconds, probe.FailureThreshold = 10, 10
}

// remember notes which pods there are.
func (r *rolling) remember() {
	r.t.Helper()
	r.old = map[string]string{}
	pods := must[*corev1.PodList](r.headgate)(r.cluster.Client().CoreV1().Pods(r.class).List(r.t.Context(), metav1.ListOptions{LabelSelector: "app=web"}))
	for _, pod := range pods.Items {
		r.old[pod.Name] = pod.Status.PodIP
	}
}

// names are those of the old pods.
func (r *rolling) names() map[string]bool {
	names := map[string]bool{}
	for name := range r.old {
		names[name] = true
	}
	return names
}

// ask sends a request and returns the name of the pod that answered.
func ask(client *http.Client, request *http.Request, major int) (pod string, response *http.Response, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if response, err = client.Do(request.WithContext(ctx)); err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", nil, err
	}
	rest, ok := strings.CutPrefix(string(body), "backend: ")
	if response.StatusCode != http.StatusOK || response.ProtoMajor != major || !ok {
		return "", nil, fmt.Errorf("the answer by %s is %d, %q", response.Proto, response.StatusCode, body[:min(len(body), 100)])
	}
	pod, _, _ = strings.Cut(rest, "\n")
	return pod, response, nil
}

// addRequests adds a client that sends GET and POST over one connection.
func (r *rolling) addRequests(l *load, client httpClient) {
	url := "https://" + r.host("web") + "/"
	post := false
	l.repeat(2*pace, func() error {
		request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
		if post = !post; post && err == nil {
			request, err = http.NewRequest(http.MethodPost, url, strings.NewReader("hello"))
		}
		if err == nil {
			_, _, err = ask(client.Client, request, client.major)
		}
		return err
	}, client.end)
}

// addStreams adds a client that opens one gRPC stream after the other.
func (r *rolling) addStreams(l *load, client httpClient) {
	l.repeat(pace, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), shortStream+2*answerTimeout)
		defer cancel()
		began := time.Now()
		_, err := r.stream(ctx, client, func(int) bool { return time.Since(began) < shortStream })
		return err
	}, client.end)
}

// stream opens a gRPC stream in both directions: each message is sent when the one before
// came back. It returns the pod once there is one. more says whether to send another message.
func (r *rolling) stream(ctx context.Context, client httpClient, more func(sent int) bool) (pod string, err error) {
	reader, writer := io.Pipe()
	defer writer.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.host("grpc")+"/echo.Echo/Stream", reader)
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	const message = "\x00\x00\x00\x00\x05hello"
	// NGINX sends the header with the first message.
	go func() { _, _ = io.WriteString(writer, message) }()
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("open a stream: %w", err)
	}
	defer response.Body.Close()
	pod = response.Header.Get("X-Backend")
	if response.StatusCode != http.StatusOK || pod == "" {
		return pod, fmt.Errorf("a stream is answered %d, grpc-status %q", response.StatusCode, response.Header.Get("Grpc-Status"))
	}
	back := make([]byte, len(message))
	for sent := 1; ; sent++ {
		if _, err := io.ReadFull(response.Body, back); err != nil || string(back) != message {
			return pod, fmt.Errorf("message %d came back as %q: %v", sent, back, err)
		}
		if !more(sent) {
			break
		}
		time.Sleep(5 * pace)
		if _, err := io.WriteString(writer, message); err != nil {
			return pod, fmt.Errorf("send message %d: %w", sent, err)
		}
	}
	writer.Close()
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) > 0 || response.Trailer.Get("Grpc-Status") != "0" {
		return pod, fmt.Errorf("the stream ends with %q, the trailers %v: %v", rest, response.Trailer, err)
	}
	return pod, nil
}

// untilGone has a gRPC stream that must end only with its pod.
func (r *rolling) untilGone() error {
	client := r.overHTTP2()
	defer client.end()
	ctx, cancel := context.WithTimeout(context.Background(), 2*podTimeout)
	defer cancel()
	pod, err := r.stream(ctx, client, func(int) bool { return true })
	if gone := r.gone(pod); gone != nil {
		return errors.Join(fmt.Errorf("a stream has ended before its pod: %v", err), gone)
	}
	return nil
}

// gone returns an error if one of the old pods still answers.
func (r *rolling) gone(pod string) error {
	address, ok := r.old[pod]
	if !ok {
		return fmt.Errorf("%q is not one of the old pods", pod)
	}
	transport := r.cluster.Transport("")
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, "http://"+address+":8080/", http.NoBody)
	if err != nil {
		return err
	}
	if name, _, err := ask(&http.Client{Transport: transport}, request, 1); err == nil && name == pod {
		return fmt.Errorf("pod %s still answers", pod)
	}
	return nil
}

// A session is a client with a cookie.
type session struct {
	*rolling
	mode   string
	client *http.Client
	cookie string
	pod    string
	moves  int
}

// addSession adds a client with a session at the host of a mode.
func (r *rolling) addSession(l *load, mode string) *session {
	s := &session{rolling: r, mode: mode, client: &http.Client{Transport: r.cluster.Transport(r.at(httpPort))}}
	l.repeat(2*pace, s.ask, s.client.CloseIdleConnections)
	return s
}

// ask sends a request. The session must stay at its pod until that is gone; in balanced
// mode, a pod that was added may take it.
func (s *session) ask() error {
	request, err := http.NewRequest(http.MethodGet, "http://"+s.host(s.mode)+"/", http.NoBody)
	if err != nil {
		return err
	}
	if s.cookie != "" {
		request.Header.Set("Cookie", s.cookie)
	}
	pod, response, err := ask(s.client, request, 1)
	if err != nil {
		return err
	}
	if set := response.Header.Get("Set-Cookie"); set != "" {
		s.cookie, _, _ = strings.Cut(set, ";")
	}
	before := s.pod
	if s.pod = pod; before == "" || before == pod {
		return nil
	}
	s.moves++
	if s.mode == "balanced" && s.old[pod] == "" {
		return nil
	}
	if err := s.gone(before); err != nil {
		return fmt.Errorf("a %s session moved to %s: %w", s.mode, pod, err)
	}
	return nil
}
