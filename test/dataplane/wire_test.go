package dataplane_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A wire is a backend that answers with the head of the request, byte for
// byte as it came.
type wire struct {
	address     string
	connections atomic.Int64
}

const wireHead = "HTTP/1.1 200 OK\r\nServer: wire\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%s\r\n"

// startWire runs a wire. more are header lines of its answers, each with its
// line end.
func startWire(t *testing.T, more string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	w := &wire{address: listener.Addr().String()}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			w.connections.Add(1)
			go serveWire(connection, more)
		}
	}()
	return w
}

func serveWire(connection net.Conn, more string) {
	defer connection.Close()
	for reader := bufio.NewReader(connection); ; {
		head, err := readHead(reader)
		if err != nil {
			return
		}
		if length, err := strconv.Atoi(sentHeader(head).Get("Content-Length")); err == nil {
			if _, err := io.CopyN(io.Discard, reader, int64(length)); err != nil {
				return
			}
		}
		body := head
		if strings.HasPrefix(head, "HEAD ") {
			body = ""
		}
		if _, err := fmt.Fprintf(connection, wireHead+"%s", len(head), more, body); err != nil {
			return
		}
	}
}

// readHead reads up to the empty line that ends a head.
func readHead(reader *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return "", err
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String(), nil
		}
	}
}

// sentTarget is the target in a head that a wire saw.
func sentTarget(head string) string {
	line, _, _ := strings.Cut(head, "\r\n")
	_, line, _ = strings.Cut(line, " ")
	if i := strings.LastIndex(line, " "); i >= 0 {
		line = line[:i]
	}
	return line
}

// sentHeader is the header in a head that a wire saw.
func sentHeader(head string) http.Header {
	_, lines, _ := strings.Cut(head, "\r\n")
	// What can't be read the caller will miss.
	header, _ := textproto.NewReader(bufio.NewReader(strings.NewReader(lines))).ReadMIMEHeader()
	return http.Header(header)
}

// get is a request over HTTP/1.1 with the target as it stands.
func get(host, target string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
}

// askRaw sends bytes and returns the one answer to them.
func askRaw(t *testing.T, g *headgatetest.Instance, text string) headgatetest.Response {
	t.Helper()
	responses := g.Raw(text)
	if len(responses) != 1 {
		t.Fatalf("%d answers to %q", len(responses), text)
	}
	return responses[0]
}

// askH2 asks over HTTP/2 with the target as it stands.
func askH2(t *testing.T, client *http.Client, host, target string) (status int, head string) {
	t.Helper()
	request := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: host, Opaque: target}, Host: host, Header: http.Header{},
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// ruled is an Ingress of rules "HOST KIND PATH SERVICE", or "HOST KIND PATH
// SERVICE PORT"; a host "-" is none, and so is a path "-". Annotations are
// "name: value" without the prefix and follow the rules behind an element "".
func ruled(name string, rules ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata:\n  name: %s\n", name)
	for i, rule := range rules {
		if rule != "" {
			continue
		}
		b.WriteString("  annotations:\n")
		for _, annotation := range rules[i+1:] {
			key, value, _ := strings.Cut(annotation, ": ")
			fmt.Fprintf(&b, "    nginx.ingress.kubernetes.io/%s: %q\n", key, value)
		}
		rules = rules[:i]
		break
	}
	b.WriteString("spec:\n  rules:\n")
	for _, rule := range rules {
		part := strings.Split(rule, " ")
		host, kind, path, service, port := part[0], part[1], part[2], part[3], "number: 80"
		if len(part) > 4 {
			port = part[4]
			if _, err := strconv.Atoi(port); err == nil {
				port = "number: " + port
			} else {
				port = "name: " + port
			}
		}
		b.WriteString("  - http:\n      paths:\n      - pathType: " + kind + "\n")
		if path != "-" {
			fmt.Fprintf(&b, "        path: %q\n", strings.ReplaceAll(path, "␣", " "))
		}
		fmt.Fprintf(&b, "        backend: {service: {name: %s, port: {%s}}}\n", service, port)
		if host != "-" {
			fmt.Fprintf(&b, "    host: %q\n", host)
		}
	}
	return b.String()
}

// served is a Service with port 80 and its endpoints.
func served(name string, endpoints ...string) string {
	return headgatetest.Service(name) + headgatetest.Endpoints(name, endpoints...)
}
