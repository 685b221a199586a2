package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const (
	bodyToFile   = "a client request body is buffered to a temporary file"
	answerToFile = "an upstream response is buffered to a temporary file"
)

// logs reports whether the log has a line with a text about a visit.
func (v *keyVisit) logs(text string) bool {
	for line := range strings.Lines(v.instance.Log.String()) {
		if strings.Contains(line, text) && strings.Contains(line, v.mark) {
			return true
		}
	}
	return false
}

// waitForLog returns when the log has all that NGINX wrote so far: what it
// writes of a request that comes now is there.
func (v *keyVisit) waitForLog(b *keyFixture) {
	last := b.visit(v.instance, headgatetest.Request{Method: http.MethodPost, Path: "/"}, 100_000, false, "http", false)
	last.request.Host, last.request.Path = "own.test", "/?"+last.mark
	last.ask()
	for deadline := time.Now().Add(headgatetest.Timeout); !last.logs(bodyToFile) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// bodyFile sees whether NGINX put a request's body into a file, which it logs.
func bodyFile(b *keyFixture, v *keyVisit) string {
	v.request.Path = "/?" + v.mark
	r := v.ask()
	v.waitForLog(b)
	if v.logs(bodyToFile) {
		return fmt.Sprint(r.Status, " with a file")
	}
	return fmt.Sprint(r.Status, " without")
}

// open asks, and returns when the head of the answer is there.
func (v *keyVisit) open() (*http.Response, error) {
	client := v.instance.NewClient(v.request.HTTP2)
	request, err := http.NewRequest(http.MethodGet, v.request.Scheme+"://a.test"+v.request.Path, nil)
	if err != nil {
		return nil, err
	}
	request.Header, request.Close = v.request.Header, true
	return client.Do(request)
}

// inParts sees what a backend says of how the parts of its answer arrive.
func inParts(_ *keyFixture, v *keyVisit) string {
	response, err := v.open()
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	first := make([]byte, len("first "))
	if _, err := io.ReadFull(response.Body, first); err != nil {
		return err.Error()
	}
	close(v.begun)
	rest, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(rest))
}

// answerFile sees whether NGINX puts an answer into a file that its client does
// not read yet. It returns when the backend got rid of the answer, or does not
// seem to.
func answerFile(b *keyFixture, v *keyVisit) string {
	v.request.Path += "?" + v.mark
	response, err := v.open()
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	select {
	case <-v.ended:
	case <-time.After(3 * time.Second):
	}
	v.waitForLog(b)
	file := v.logs(answerToFile)
	if n, err := io.Copy(io.Discard, response.Body); n != largeAnswer {
		return fmt.Sprintf("%d bytes of %d, %v", n, largeAnswer, err)
	}
	if file {
		return "a file"
	}
	return "no file"
}
