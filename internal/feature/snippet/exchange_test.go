package snippet_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/porttest"
)

// A request is what a client sends.
type request struct {
	method, target string
	// headers are lines, without the host.
	headers []string
	body    string
	// answer is what the backend answers, and auth what the auth service does.
	answer, auth answer
}

// An answer is that of a backend.
type answer struct {
	status  int
	headers []string
	body    string
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %q %d bytes; the backend answers %d %q", r.method, r.target, r.headers, len(r.body), r.answer.status, r.answer.headers)
}

// A result is all that a request led to: the response, and what the backend received.
type result struct {
	Status   int
	Headers  []string
	Body     string
	Received []string
}

// A recorder is a backend that answers as the test says and remembers what it received. It
// reads requests as they are, without a library, which would join headers that come twice.
type recorder struct {
	Address string

	mu       sync.Mutex
	answer   answer
	received []string
}

func startRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Address = porttest.Serve(t, "127.0.0.1:0", func(c *net.TCPConn) { r.serve(c) }).String()
	return r
}

func (r *recorder) serve(connection net.Conn) {
	for reader := bufio.NewReader(connection); ; {
		lines, err := readHead(reader)
		if err != nil {
			return
		}
		body, err := readBody(reader, lines[1:])
		if err != nil {
			return
		}
		// NGINX writes names as it likes, and in its order.
		for i, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ":")
			lines[1+i] = strings.ToLower(name) + ":" + value
		}
		slices.Sort(lines[1:])
		r.mu.Lock()
		r.received = append(append(r.received, lines...), "body: "+body)
		text := r.answer.text(strings.HasPrefix(lines[0], "HEAD "))
		r.mu.Unlock()
		if _, err := io.WriteString(connection, text); err != nil {
			return
		}
	}
}

// expect sets the answer to the next requests and forgets the earlier ones.
func (r *recorder) expect(a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.received = a, nil
}

func (r *recorder) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

func (a answer) text(head bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d X\r\n", a.status)
	for _, header := range a.headers {
		b.WriteString(header + "\r\n")
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(a.body))
		if !head {
			b.WriteString(a.body)
		}
		return b.String()
	}
	b.WriteString("\r\n")
	return b.String()
}

func readHead(reader *bufio.Reader) ([]string, error) {
	var lines []string
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			lines = append(lines, line)
		} else if len(lines) > 0 {
			return lines, nil
		}
	}
}

func readBody(reader *bufio.Reader, headers []string) (string, error) {
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); {
		case strings.EqualFold(name, "Transfer-Encoding") && value == "chunked":
			body, err := io.ReadAll(httputil.NewChunkedReader(reader))
			if err != nil {
				return "", err
			}
			_, err = reader.ReadString('\n')
			return string(body), err
		case strings.EqualFold(name, "Content-Length"):
			var length int64
			if _, err := fmt.Sscan(value, &length); err != nil {
				return "", err
			}
			body := make([]byte, length)
			_, err := io.ReadFull(reader, body)
			return string(body), err
		}
	}
	return "", nil
}

// A side is one of the two that are compared: a front with the services behind it.
type side struct {
	address       string
	backend, auth *recorder

	connection net.Conn
	reader     *bufio.Reader
}

// ask sends a request to a host.
func (s *side) ask(t *testing.T, host string, r request) result {
	t.Helper()
	s.backend.expect(r.answer)
	s.auth.expect(r.auth)
	out, err := s.try(host, r)
	if err != nil {
		// NGINX may close a connection before it reads a request.
		out = result{Body: "no response"}
		s.close()
	}
	_, port, _ := net.SplitHostPort(s.address)
	for _, line := range s.backend.requests() {
		out.Received = append(out.Received, strings.Replace(line, "x-forwarded-port: "+port, "x-forwarded-port: 80", 1))
	}
	// What it is asked with is the matter of other tests.
	if len(s.auth.requests()) > 0 {
		out.Received = append(out.Received, "the auth service is asked")
	}
	return out
}

func (s *side) close() {
	if s.connection != nil {
		s.connection.Close()
		s.connection = nil
	}
}

func (s *side) try(host string, r request) (result, error) {
	fresh := s.connection == nil
	response, body, err := s.exchange(host, r)
	if err != nil && !fresh {
		s.close()
		response, body, err = s.exchange(host, r)
	}
	if err != nil {
		return result{}, err
	}
	if response.Close {
		s.close()
	}
	out := result{Status: response.StatusCode, Body: unzip(response, body)}
	for name, values := range response.Header {
		for _, value := range values {
			if !isOfMoment[name] {
				out.Headers = append(out.Headers, name+": "+sinceDate(response, name, value))
			}
		}
	}
	out.Headers = append(out.Headers, fmt.Sprint("length: ", response.ContentLength))
	slices.Sort(out.Headers)
	return out, nil
}

// sinceDate is the value of a header, for a time in Expires its distance from Date: the two sides may be
// asked in different seconds. That of "expires max" is always the same.
func sinceDate(response *http.Response, name, value string) string {
	const most = "Thu, 31 Dec 2037 23:55:55 GMT"
	sent, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil || name != "Expires" || value == most {
		return value
	}
	expires, err := http.ParseTime(value)
	if err != nil || sent.Sub(expires).Hours() > 24*365 {
		// An old one is always the same too.
		return value
	}
	return expires.Sub(sent).String()
}

// unzip is the body without compression, which depends on the parts in which it comes.
func unzip(response *http.Response, body string) string {
	if response.Header.Get("Content-Encoding") != "gzip" {
		return body
	}
	reader, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		return body
	}
	whole, err := io.ReadAll(reader)
	if err != nil {
		return body
	}
	return "gzip: " + string(whole)
}

// isOfMoment has the headers that differ by time or connection.
var isOfMoment = map[string]bool{"Date": true, "Connection": true, "Keep-Alive": true, "Content-Length": true}

func (s *side) exchange(host string, r request) (*http.Response, string, error) {
	if s.connection == nil {
		connection, err := net.Dial("tcp", s.address)
		if err != nil {
			return nil, "", err
		}
		s.connection, s.reader = connection, bufio.NewReader(connection)
	}
	if err := s.connection.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.method, r.target, host)
	for _, header := range r.headers {
		b.WriteString(header + "\r\n")
	}
	if r.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	b.WriteString("\r\n" + r.body)
	if _, err := s.connection.Write(b.Bytes()); err != nil {
		return nil, "", err
	}
	response, err := http.ReadResponse(s.reader, &http.Request{Method: r.method})
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}
