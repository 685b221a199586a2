package answerrewrite_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// A directive is one of NGINX's with the annotations that mean the same.
type directive struct {
	nginx       string
	annotations []string
}

func redirect(from, to string) directive {
	return directive{"proxy_redirect " + from + " " + to, []string{"proxy-redirect-from: " + from, "proxy-redirect-to: " + to}}
}

func domain(text string) directive {
	return directive{"proxy_cookie_domain " + text, []string{"proxy-cookie-domain: " + text}}
}

func path(text string) directive {
	return directive{"proxy_cookie_path " + text, []string{"proxy-cookie-path: " + text}}
}

var directives = []directive{
	redirect("http://in.local/", "https://out.example/"),
	redirect("/in", "https://out.example"),
	redirect("http://in.local/", "http://out.example:8080/a?b=c&d,e"),
	redirect("~in.local", "https://out.example/"),
	redirect("~http://in./in/?", "https://out.example/"),
	redirect("~IN", "https://out.example/"),
	domain("in.local out.example"),
	domain(".In.Local .out.example"),
	domain("~in.local out.example"),
	domain("~In out.example"),
	path("/in /out"),
	path("/ /out/"),
	path("~/in /out"),
	path("~IN /out"),
	path("/in/ ~x"),
}

var answers = [][]string{
	{"Location: http://in.local/x"},
	{"Location: http://IN.local/x"},
	{"Location: http://in.local"},
	{"Location: http://in.local/in/y?z"},
	{"Location: /in/x"},
	{"Location: relative"},
	{"Refresh: 0; url=http://in.local/x"},
	{"Refresh: 0; URL=http://in.local/x; url=http://in.local/"},
	{"Refresh: 0;url= http://in.local/x"},
	{"Refresh: 0"},
	{"Location: /in", "Refresh: 0; url=/in"},
	{"Set-Cookie: a=b"},
	{"Set-Cookie: a=in.local; Domain=in.local; Path=/in"},
	{"Set-Cookie: a=b; domain=.in.local; PATH=/in/x; Secure; HttpOnly"},
	{"Set-Cookie: Domain=in.local; x=/in; Path=/IN"},
	{"Set-Cookie: a=b; Domain=www.in.local; Path=/x/in"},
	{"Set-Cookie: a=b; Domain = in.local ; Path =  /in"},
	{"Set-Cookie: a=b; Domain; Path"},
	{"Set-Cookie: a=b; Domain=; Path="},
	{"Set-Cookie: a=b; Path=/in; Path=/inner; Domain=IN.LOCAL"},
	{"Set-Cookie: a=\"x; y\"; Path=/", "Set-Cookie: b=1; Path=/in", "Set-Cookie: c=2; Domain=other"},
	{"Set-Cookie: a=b; Path=/in=x; Domain=in.local=y"},
}

// TestLikeNGINX compares with what NGINX's own directives do. They write
// cookies again that they change, so spaces are not compared.
func TestLikeNGINX(t *testing.T) {
	t.Parallel()
	backend := sayer(t)
	manifests := headgatetest.Service("a") + headgatetest.Endpoints("a", backend)
	var servers strings.Builder
	oracle := fmt.Sprint("127.0.0.1:", porttest.Free(t))
	for i, d := range directives {
		manifests += headgatetest.Ingress(fmt.Sprint("i", i), fmt.Sprintf("h%d.test", i), "/", "a", d.annotations...)
		fmt.Fprintf(&servers, "server { listen %s; server_name h%d.test; location / { proxy_pass http://%s; %s; } }\n", oracle, i, backend, d.nginx)
	}
	startNGINX(t, oracle, servers.String())
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	ours := g.NewClient(false)
	defer ours.CloseIdleConnections()
	theirs := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", oracle)
		}},
	}
	defer theirs.CloseIdleConnections()
	for i, d := range directives {
		for _, a := range answers {
			request := headgatetest.Request{Host: fmt.Sprintf("h%d.test", i), Header: sending(a)}
			var got [2][]string
			for side, client := range []*http.Client{theirs, ours} {
				r, err := g.Try(client, request)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range said(r) {
					got[side] = append(got[side], strings.ReplaceAll(line, " ", ""))
				}
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("%s; %q (-NGINX +Headgate):\n%s", d.nginx, a, diff)
			}
		}
	}
}

// startNGINX runs a plain NGINX until the test ends.
func startNGINX(t *testing.T, address, servers string) {
	t.Helper()
	capabilities, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hg-oracle-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	conf := filepath.Join(dir, "nginx.conf")
	text := "daemon off; master_process off; pid " + dir + "/pid; error_log stderr; events {}\nhttp { access_log off; absolute_redirect on; port_in_redirect off;\n"
	for _, temporary := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += temporary + "_temp_path " + dir + ";\n"
	}
	if err := os.WriteFile(conf, []byte(text+servers+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(capabilities.Binary, "-e", "stderr", "-c", conf)
	command.Stderr = t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	headgatetest.Eventually(t, "the plain NGINX listens", func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}
