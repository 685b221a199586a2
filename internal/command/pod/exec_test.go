package pod

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"
)

// The channels of a WebSocket to a command, by the first byte of a message.
const (
	toInput   = 0
	fromOut   = 1
	fromError = 2
	status    = 3
	closing   = 255
)

// execAt returns an Exec that asks a server.
func execAt(t *testing.T, handler http.Handler) Exec {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return NewExec(config, client)
}

// A command gets its input, and its output and exit status come back.
func TestExec(t *testing.T) {
	var asked *url.URL
	run := execAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL
		connection, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"v5.channel.k8s.io"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.CloseNow()
		send := func(channel byte, text string) {
			if err := connection.Write(r.Context(), websocket.MessageBinary, append([]byte{channel}, text...)); err != nil {
				t.Error(err)
			}
		}
		for {
			_, message, err := connection.Read(r.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if message[0] == closing {
				break
			}
			if message[0] == toInput {
				send(fromOut, string(message[1:]))
			}
		}
		send(fromError, "failed")
		send(status, `{"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}`)
		_ = connection.Close(websocket.StatusNormalClosure, "")
	}))
	var out, errs bytes.Buffer
	err := run(t.Context(), Target{"edge", "p", "c"}, Command{Args: []string{"cat", "-n"}, In: strings.NewReader("typed"), Out: &out, Err: &errs})
	var ended exec.CodeExitError
	if !errors.As(err, &ended) || ended.Code != 3 || out.String() != "typed" || errs.String() != "failed" {
		t.Errorf("the command printed %q and %q: %v", out.String(), errs.String(), err)
	}
	if asked.Path != "/api/v1/namespaces/edge/pods/p/exec" {
		t.Errorf("the path is %s", asked.Path)
	}
	want := url.Values{"command": {"cat", "-n"}, "container": {"c"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	if diff := cmp.Diff(want, asked.Query()); diff != "" {
		t.Error(diff)
	}
}

// Where WebSockets are not possible, SPDY is tried.
func TestExecFallsBack(t *testing.T) {
	var tried []string
	run := execAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tried = append(tried, r.Method+" "+r.Header.Get("Upgrade"))
		http.Error(w, "no", http.StatusBadRequest)
	}))
	err := run(t.Context(), Target{"edge", "p", "c"}, Command{Args: []string{"ls"}, Out: io.Discard, Err: io.Discard})
	if err == nil {
		t.Error("a refused connection is not an error")
	}
	if diff := cmp.Diff([]string{"GET websocket", "POST SPDY/3.1"}, tried); diff != "" {
		t.Error(diff)
	}
}
