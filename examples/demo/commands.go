package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// changeWithin limits the time until a command shows the expected output.
const changeWithin = 5 * time.Second

// A command is a line for a shell in which $DEMO is the stage's folder.
type command struct {
	does string
	line string
	// wants are parts of the output.
	wants []string
	// unchanged means that the output is the same as before.
	unchanged bool
}

// commands are the lines to try, in this order.
func commands(p ports) []command {
	hello := fmt.Sprintf("http://hello.localhost:%d", p.http)
	shop := fmt.Sprintf("shop.localhost:%d", p.https)
	reloads := fmt.Sprintf("curl -s http://localhost:%d/metrics | grep ^headgate_reloads_total", p.healthz)
	return []command{
		{does: "round robin between two endpoints, in each worker of NGINX: repeat it", line: "curl " + hello + "/", wants: []string{"backend: hello-"}},
		{does: "an exact path", line: "curl " + hello + "/about", wants: []string{"backend: about\n"}},
		{does: "the URI arrives as it was sent", line: "curl '" + hello + "/a%2Fb//c?x=%20'", wants: []string{"request: GET /a%2Fb//c?x=%20 HTTP/1.1\n"}},
		{does: "no such host", line: fmt.Sprintf("curl -i http://unknown.localhost:%d/", p.http), wants: []string{"404 Not Found"}},
		{does: "redirected to HTTPS, because the host has a certificate", line: fmt.Sprintf("curl -i http://shop.localhost:%d/cart", p.http),
			wants: []string{"308 Permanent Redirect", "ocation: https://" + shop + "/cart\r\n"}},
		{does: "TLS; the Ingress refers to the port of the Service by its name", line: "curl --cacert $DEMO/ca.crt https://" + shop + "/cart", wants: []string{"backend: cart\n"}},
		{does: "a wildcard", line: fmt.Sprintf("curl --cacert $DEMO/ca.crt https://blue.apps.localhost:%d/", p.https),
			wants: []string{"backend: apps\n", "Host: blue.apps.localhost"}},
		{does: "server-sent events", line: "curl -N -H 'Accept: text/event-stream' " + hello + "/", wants: []string{"data: hello-", " 3\n"}},
		{does: "a WebSocket's handshake: status 101, then curl gives up after a second (error 28)", line: "curl -i -m 1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' " +
			"-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' " + hello + "/",
			wants: []string{"101 Switching Protocols", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="}},
		{does: "the page for the browser", line: fmt.Sprintf("curl -s http://localhost:%d/", p.dashboard), wants: []string{"<title>Headgate</title>"}},
		{does: "how often NGINX was reloaded", line: reloads, wants: []string{"headgate_reloads_total"}},
		{does: "edit a manifest: another path", line: "sed -i 's|path: /about|path: /contact|' $DEMO/manifests/hello.yaml"},
		{does: "the change is served", line: "curl " + hello + "/contact", wants: []string{"backend: about\n"}},
		{does: "without a reload", line: reloads, unchanged: true},
	}
}

// announce prints what the demo serves and the commands.
func announce(to io.Writer, folder string, p ports) {
	fmt.Fprintf(to, `
Headgate serves the manifests in %[1]s/manifests:

  http://hello.localhost:%[2]d/          http://hello.localhost:%[2]d/about
  https://shop.localhost:%[3]d/          https://shop.localhost:%[3]d/cart
  https://ANYTHING.apps.localhost:%[3]d/
  http://localhost:%[4]d/healthz         http://localhost:%[4]d/metrics

What it serves, and why, on a page for the browser:

  http://localhost:%[5]d/

In another terminal (curl and browsers take *.localhost for this machine):

  export DEMO=%[1]s
`, folder, p.http, p.https, p.healthz, p.dashboard)
	for _, c := range commands(p) {
		fmt.Fprintf(to, "\n  # %s\n  %s\n", c.does, c.line)
	}
	fmt.Fprint(to, "\nThe access log follows. Ctrl-C ends the demo.\n\n")
}

// check runs the commands one after the other. A command may need several tries,
// since a change in the folder takes some milliseconds.
func check(ctx context.Context, folder string, list []command) error {
	before := map[string]string{}
	for _, c := range list {
		wants := c.wants
		if c.unchanged {
			wants = []string{before[c.line]}
		}
		deadline := time.Now().Add(changeWithin)
		got, err := runLine(ctx, folder, c.line)
		for !containsAll(got, wants) {
			if ctx.Err() != nil || time.Now().After(deadline) {
				return fmt.Errorf("%s\nwant %q, got (%v):\n%s", c.line, wants, err, got)
			}
			time.Sleep(20 * time.Millisecond)
			got, err = runLine(ctx, folder, c.line)
		}
		before[c.line] = got
		fmt.Printf("ok    %s\n", c.line)
	}
	return nil
}

// runLine returns the output of a line. Its exit code is ignored in part: for curl,
// ending a WebSocket is a failure.
func runLine(ctx context.Context, folder, line string) (string, error) {
	shell := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	// A proxy that the user needs for other hosts must not be used for these.
	shell.Env = append(os.Environ(), "DEMO="+folder, "NO_PROXY=*", "no_proxy=*")
	var out strings.Builder
	shell.Stdout = &out
	err := shell.Run()
	return out.String(), err
}

func containsAll(text string, wants []string) bool {
	for _, want := range wants {
		if !strings.Contains(text, want) {
			return false
		}
	}
	return true
}
