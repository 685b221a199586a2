package e2e_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Someone with a shell in the container of an edge has nothing that the API server takes, finds nothing of another
// group in files, in memory or at the control, and reaches of the control what is listed here and no more.
func TestShellInEdge(t *testing.T) {
	b := startBroken(t)
	edge, shell := b.own.edge, b.shell(b.own.edge)
	if got := shell("ls /var/run/secrets /run/secrets 2>/dev/null; ls /etc/headgate/control"); got != "ca.crt\ntoken\n" {
		t.Errorf("the edge has files of the cluster: %q", got)
	}
	everything := b.inFiles(edge)
	if !b.own.in(everything) {
		t.Error("the key of its own group is in no file, not even in --state-dir: the search is of no use")
	}
	if b.other.in(everything) {
		t.Error("a file of the edge has the key of another group")
	}
	tokens := regexp.MustCompile(`eyJ[\w-]{10,}\.[\w-]+\.[\w-]+`).FindAllString(string(everything), -1)
	if len(tokens) == 0 {
		t.Error("no token is found, not even that for the control: the search is of no use")
	}
	for _, token := range tokens {
		b.wantNoAccess(token, apierrors.IsUnauthorized)
	}
	b.wantNoAccess("", func(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) })
	own, other := b.inMemory(edge)
	if !own || other {
		t.Errorf("the key of its own group is in its memory: %t; that of another one: %t", own, other)
	}
	b.wantPorts(map[int]func(address string) error{
		8444: nil, // See stolen_test.go.
		// Health and metrics: no page of the controller's API, and no profiles.
		10254: func(address string) error {
			return b.answers("http://"+address, map[string]int{"/healthz": 200, "/metrics": 200, "/v1/edges": 404, "/v1/units": 404, "/debug/pprof/": 404})
		},
		// The webhook: it answers reviews of Ingresses, by POST, to everyone.
		8443: func(address string) error {
			return b.answers("https://"+address, map[string]int{"/v1/units": 405, "/metrics": 405})
		},
	})

	stolen := b.steal(b.own)
	stolen.wantOnlyStreams()
	stolen.wantUnits(b.own, b.other)
	b.steal(b.other).wantUnits(b.other, b.own)
}

// A broken is a release with edges of two groups, and someone in one of them.
type broken struct {
	*splitRelease
	own, other group
	control    corev1.Pod
}

// A group has a namespace with an Ingress and its certificate, and an edge.
type group struct {
	headgate *headgate
	host     string
	pair     headgatetest.KeyPair
	edge     corev1.Pod
}

func startBroken(t *testing.T) *broken {
	t.Helper()
	b := &broken{splitRelease: newSplit(t, "")}
	other := *b.headgate
	other.class = b.cluster.Namespace(t)
	b.own, b.other = b.createGroup(b.headgate), b.createGroup(&other)
	patch := []byte(`{"metadata":{"annotations":{"headgate.io/edge-group":"shop"}}}`)
	must[*corev1.Namespace](b.headgate)(b.cluster.Client().CoreV1().Namespaces().Patch(t.Context(), other.class, types.MergePatchType, patch, metav1.PatchOptions{}))
	b.apply("install", "--set", "controller.mode=split,controller.replicaCount=1,controller.control.replicaCount=1,controller.edge.groups[0].name=shop",
		"--set", "controller.admissionWebhooks.enabled=true,controller.admissionWebhooks.selfSigned.enabled=true,controller.admissionWebhooks.patch.enabled=false")
	b.control, b.own.edge, b.other.edge = b.release("control")[0], b.release("controller")[0], b.release("edge")[0]
	for _, g := range []group{b.own, b.other} {
		b.address = g.edge.Status.PodIP
		for _, of := range []group{b.own, b.other} {
			if of.host == g.host {
				b.await("https://"+of.host+"/", showing(of.pair, "web"))
			} else {
				b.await("https://"+of.host+"/", status(http.StatusNotFound))
			}
		}
	}
	return b
}

func (b *broken) createGroup(h *headgate) group {
	b.t.Helper()
	g := group{headgate: h, host: h.host("web")}
	h.createBackend("web")
	g.pair = h.createSecret("web", g.host)
	ing := h.ingress("web", g.host, "/", "web", "web")
	ing.Spec.IngressClassName = &b.class
	h.createIngress(ing)
	return g
}

// shell returns what runs commands in an edge, as its user.
func (b *broken) shell(edge corev1.Pod) func(script string) string {
	return func(script string) string {
		b.t.Helper()
		return b.kubectl.run("exec", "-n", b.class, edge.Name, "--", "sh", "-c", script+"; true")
	}
}

// in reports whether the private key of the group is in bytes, in any of the forms that it may have.
func (g group) in(text []byte) bool {
	block, _ := pem.Decode([]byte(g.pair.Key))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return false
	}
	secret, err := parsed.(*ecdsa.PrivateKey).Bytes()
	if err != nil {
		return false
	}
	// As a number of OpenSSL.
	reversed := slices.Clone(secret)
	slices.Reverse(reversed)
	inBase64 := base64.StdEncoding.EncodeToString([]byte(g.pair.Key))
	for _, form := range []string{
		// The second line has most of it.
		strings.Split(g.pair.Key, "\n")[2], base64.StdEncoding.EncodeToString(block.Bytes), inBase64[:len(inBase64)-8], string(secret), string(reversed),
	} {
		if bytes.Contains(text, []byte(form)) {
			return true
		}
	}
	return false
}

// wantNoAccess checks that the API server refuses Secrets with a token, or without one if it is empty.
func (b *broken) wantNoAccess(token string, refused func(error) bool) {
	b.t.Helper()
	config := rest.AnonymousClientConfig(b.cluster.Config())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, namespace := range []string{metav1.NamespaceAll, b.class} {
		if _, err := client.CoreV1().Secrets(namespace).List(b.t.Context(), metav1.ListOptions{}); !refused(err) {
			b.t.Errorf("Secrets in namespace %q with the token %.20q: %v", namespace, token, err)
		}
	}
}

// inFiles is what the environments and the files of an edge have, but for those of the image and the kernel. Root reads
// them, so it is as much as the user of the shell can read, and more.
func (b *broken) inFiles(edge corev1.Pod) []byte {
	b.t.Helper()
	var all []byte
	for _, process := range processesOf(b.t, edge) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.pid))
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, text...)
		if !process.first {
			continue
		}
		root := fmt.Sprintf("/proc/%d/root/", process.pid)
		if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && slices.Contains([]string{"proc", "sys", "usr"}, strings.TrimPrefix(path, root)) {
				return fs.SkipDir
			}
			if entry.Type().IsRegular() {
				text, err := os.ReadFile(path)
				all = append(all, text...)
				return err
			}
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
	}
	return all
}

// inMemory says which keys are in the memory of the edge's processes, which all have the user of the shell.
func (b *broken) inMemory(edge corev1.Pod) (own, other bool) {
	b.t.Helper()
	for _, process := range processesOf(b.t, edge) {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", process.pid))
		if err != nil {
			b.t.Fatal(err)
		}
		memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", process.pid))
		if err != nil {
			b.t.Fatal(err)
		}
		defer memory.Close()
		for line := range strings.Lines(string(maps)) {
			fields := strings.Fields(line)
			if !strings.HasPrefix(fields[1], "rw") {
				continue
			}
			var from, to int64
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
				b.t.Fatal(err)
			}
			// Some of it is not there.
			text, _ := io.ReadAll(io.NewSectionReader(memory, from, to-from))
			own, other = own || b.own.in(text), other || b.other.in(text)
		}
	}
	return own, other
}

// wantPorts checks that the control listens at these ports and no others, but for those of 127.0.0.1, and what each of them
// answers to an edge. Network policies, which the network of the test does not have, can close all but the first.
func (b *broken) wantPorts(want map[int]func(address string) error) {
	b.t.Helper()
	text := b.kubectl.run("exec", "-n", b.class, b.control.Name, "--", "cat", "/proc/net/tcp", "/proc/net/tcp6")
	got := map[int]bool{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		// 0A is LISTEN.
		if len(fields) < 4 || fields[3] != "0A" || strings.HasPrefix(fields[1], "0100007F:") {
			continue
		}
		_, port, _ := strings.Cut(fields[1], ":")
		number, err := strconv.ParseInt(port, 16, 32)
		if err != nil {
			b.t.Fatal(err)
		}
		got[int(number)] = true
	}
	if listening, wanted := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(listening, wanted) {
		b.t.Errorf("the control listens at %v, want %v", listening, wanted)
	}
	for port, check := range want {
		if check == nil {
			continue
		}
		if err := check(fmt.Sprintf("%s:%d", b.control.Status.PodIP, port)); err != nil {
			b.t.Error(err)
		}
	}
}

// answers checks the statuses of paths.
func (b *broken) answers(at string, want map[string]int) error {
	transport := b.cluster.Transport("")
	transport.TLSClientConfig = anyCertificate()
	defer transport.CloseIdleConnections()
	for path, status := range want {
		ctx, cancel := context.WithTimeout(b.t.Context(), answerTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+path, http.NoBody)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case err != nil:
			return err
		case response.StatusCode != status:
			return fmt.Errorf("%s answers %d, want %d", at+path, response.StatusCode, status)
		case b.own.in(body) || b.other.in(body):
			return fmt.Errorf("%s answers with a private key", at+path)
		}
	}
	return nil
}
