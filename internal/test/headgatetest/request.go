package headgatetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A Request is what a test asks of an Instance.
type Request struct {
	Method string // GET if empty
	Scheme string // http if empty
	Host   string
	Path   string // with the query, sent as it stands; / if empty
	Header http.Header
	Body   io.Reader
	// HTTP2 asks over HTTP/2, which needs https.
	HTTP2 bool
	// HTTP3 asks over HTTP/3, which needs https and use-http3.
	HTTP3 bool
	// Proxy is the header of the PROXY protocol that Do sends first, none if it is empty.
	Proxy string
}

// A Response is an answer, read to its end.
type Response struct {
	Status int
	Proto  string
	Header http.Header
	Body   string
	TLS    *tls.ConnectionState
	// Echo is what an echo backend saw, if one answered.
	Echo *Echo
}

// Get asks for a path of a host over http.
func (g *Instance) Get(host, path string) Response {
	g.t.Helper()
	return g.Do(Request{Host: host, Path: path})
}

// Do asks over a connection of its own. It follows no redirect.
func (g *Instance) Do(r Request) Response {
	g.t.Helper()
	client := g.newClient(r.HTTP2, r.Proxy)
	if r.HTTP3 {
		client = g.NewHTTP3Client()
	}
	defer client.CloseIdleConnections()
	response, err := g.Try(client, r)
	must(g.t, err)
	return response
}

// NewClient makes a client that keeps its connections, to this Instance for any
// the host.
func (g *Instance) NewClient(http2 bool) *http.Client { return g.newClient(http2, "") }

// newClient makes a client that begins each connection with a text.
func (g *Instance) newClient(http2 bool, first string) *http.Client {
	dialer := &net.Dialer{}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	return clientOf(&http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			port := g.HTTP
			if strings.HasSuffix(address, ":443") {
				port = g.HTTPS
			}
			connection, err := dialer.DialContext(ctx, "tcp", Address(port))
			if err != nil || first == "" {
				return connection, err
			}
			_, err = io.WriteString(connection, first)
			return connection, err
		},
		// The certificates are the tests' own.
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		Protocols:          protocols,
		DisableCompression: true,
	})
}

// clientOf makes a client that does not follow redirects.
func clientOf(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Timeout:       Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     transport,
	}
}

// Try asks with a client and returns what went wrong with the connection.
func (g *Instance) Try(client *http.Client, r Request) (Response, error) {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if r.Scheme == "" {
		r.Scheme = "http"
	}
	if r.Path == "" {
		r.Path = "/"
	}
	request, err := http.NewRequest(r.Method, r.Scheme+"://"+r.Host+"/", r.Body)
	if err != nil {
		return Response{}, err
	}
	path, query, hasQuery := strings.Cut(r.Path, "?")
	request.URL = &url.URL{Scheme: r.Scheme, Host: r.Host, Opaque: "//" + r.Host + path, RawQuery: query, ForceQuery: hasQuery && query == ""}
	// What stands in Opaque would be sent with scheme and host.
	if unescaped, err := url.PathUnescape(path); err == nil {
		request.URL.Opaque, request.URL.Path, request.URL.RawPath = "", unescaped, path
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	response, err := client.Do(request)
	if err != nil {
		return Response{}, err
	}
	defer response.Body.Close()
	return read(response)
}

func read(response *http.Response) (Response, error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, err
	}
	out := Response{
		Status: response.StatusCode, Proto: response.Proto, Header: response.Header, Body: string(body), TLS: response.TLS,
	}
	if response.Header.Get(echoMark) != "" {
		out.Echo = &Echo{}
		if err := json.Unmarshal(body, out.Echo); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Raw sends bytes to the http port and returns all answers to them. The last
// request should ask to close the connection.
func (g *Instance) Raw(text string) []Response {
	g.t.Helper()
	connection, err := net.Dial("tcp", Address(g.HTTP))
	must(g.t, err)
	defer connection.Close()
	must(g.t, connection.SetDeadline(time.Now().Add(Timeout)))
	_, err = io.WriteString(connection, text)
	must(g.t, err)
	all, err := io.ReadAll(connection)
	must(g.t, err)
	var responses []Response
	for reader := bufio.NewReader(bytes.NewReader(all)); ; {
		response, err := http.ReadResponse(reader, nil)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return responses
		}
		must(g.t, err)
		r, err := read(response)
		must(g.t, err)
		responses = append(responses, r)
	}
}

// WantStatus fails the test unless the status is that.
func (r Response) WantStatus(t testing.TB, status int) Response {
	t.Helper()
	if r.Status != status {
		t.Errorf("status %d, want %d; body: %.200s", r.Status, status, r.Body)
	}
	return r
}

// Protocols are requests with nothing but scheme and version: HTTP/1.1, the same with TLS, HTTP/2 and,
// if the tests' NGINX can speak it, HTTP/3, which needs use-http3.
func (g *Instance) Protocols() []Request {
	list := overTCP()
	if g.HTTP3() {
		list = append(list, Request{Scheme: "https", HTTP3: true})
	}
	return list
}

func overTCP() []Request {
	return []Request{{Scheme: "http"}, {Scheme: "https"}, {Scheme: "https", HTTP2: true}}
}

// EveryProtocol calls do with the scheme and version of requests over
// HTTP/1.1, the same with TLS, and HTTP/2.
func EveryProtocol(do func(http2 bool, scheme string)) {
	for _, r := range overTCP() {
		do(r.HTTP2, r.Scheme)
	}
}
