// Package echo is a backend for demos and tests: it answers with what it
// received. It does not know Headgate.
package echo

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// EventInterval is the time between two server-sent events.
const EventInterval = 100 * time.Millisecond

// eventCount is how many server-sent events one answer has.
const eventCount = 3

// Handler answers each request with a text that shows the backend's name, the
// request line as it came, the headers in alphabetical order, and the number
// of bytes in the body:
//
//	backend: shop-1
//	request: GET /a%2Fb?x=1 HTTP/1.1
//	Host: shop.localhost
//	X-Real-Ip: 127.0.0.1
//	body: 0 bytes
//
// A WebSocket handshake is accepted, and each text or binary message sent
// back. A request that accepts text/event-stream gets three events, one each
// EventInterval, with "NAME 1" to "NAME 3" as data.
func Handler(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isWebSocket(r):
			serveWebSocket(w, r)
		case r.Header.Get("Accept") == "text/event-stream":
			serveEvents(w, r, name)
		default:
			serveText(w, r, name)
		}
	})
}

func serveText(w http.ResponseWriter, r *http.Request, name string) {
	size, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, "reading the body: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "backend: %s\nrequest: %s %s %s\nHost: %s\n", name, r.Method, r.RequestURI, r.Proto, r.Host)
	var lines []string
	for key, values := range r.Header {
		for _, value := range values {
			lines = append(lines, key+": "+value)
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "body: %d bytes\n", size)
}

func serveEvents(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Set("Content-Type", "text/event-stream")
	answer := http.NewResponseController(w)
	for i := 1; i <= eventCount; i++ {
		fmt.Fprintf(w, "data: %s %d\n\n", name, i)
		if answer.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(EventInterval):
		}
	}
}
