package snippet_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// A shape is what an Ingress has besides snippets: annotations, and what these are in a
// location of ingress-nginx.
type shape struct {
	name        string
	annotations []string
	location    string
}

func shapes(auth *recorder) []shape {
	return []shape{
		{name: "plain"},
		{
			name: "auth", annotations: []string{"auth-url: http://" + auth.Address + "/check"},
			location: "auth_request /_auth;",
		},
		{
			name: "list", annotations: []string{"whitelist-source-range: 127.0.0.1"},
			location: "allow 127.0.0.1; deny all;",
		},
	}
}

// A snippetCase is the texts of one Ingress, in one shape.
type snippetCase struct {
	name, shape      string
	server, location string
	// pair is set where NGINX may reject what two texts together say.
	pair bool
	// bodiless is set where requests have no body.
	bodiless bool
}

// reference is an nginx.conf with a server for each case: what ingress-nginx would write of
// an Ingress with these snippets, as far as it shows.
func reference(address string, backend, auth *recorder, dir string, modules []string, cases []snippetCase) string {
	var b strings.Builder
	for _, module := range modules {
		if !strings.Contains(module, "headers_more") {
			continue
		}
		fmt.Fprintf(&b, "load_module %s;\n", module)
	}
	fmt.Fprintf(&b, "daemon off; master_process off; pid %s/pid; error_log %s/error.log; events {}\nhttp {\n", dir, dir)
	b.WriteString("access_log off; port_in_redirect off; server_tokens off; more_clear_headers Server; variables_hash_max_size 4096; server_names_hash_max_size 100000; include /etc/nginx/mime.types; default_type text/html;\n")
	b.WriteString("map $http_upgrade $connection_upgrade { default upgrade; '' ''; }\n" + administrator)
	for _, temporary := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s;\n", temporary, dir)
	}
	fmt.Fprintf(&b, "upstream backend { server %s; keepalive 8; }\nupstream auth { server %s; }\n", backend.Address, auth.Address)
	known := map[string]shape{}
	for _, s := range shapes(auth) {
		known[s.name] = s
	}
	for i, c := range cases {
		fmt.Fprintf(&b, "server {\nlisten %s;\nserver_name %s;\n%s\n%s", address, hostOf(i), c.server, authLocation)
		fmt.Fprintf(&b, "location / {\n%s\n%s%s\n}\n}\n", known[c.shape].location, withoutThose(passes, c.location), c.location)
	}
	return b.String() + "}\n"
}

// withoutThose leaves out the directives that a text has itself and that can't come twice.
func withoutThose(directives, text string) string {
	var kept []string
	for _, line := range strings.Split(directives, "\n") {
		name, _, _ := strings.Cut(line, " ")
		if name == "proxy_set_header" || !strings.Contains(text, name+" ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// administrator is what http-snippet has, for both sides.
const administrator = `
map $http_x_plan $plan { default free; ~^gold gold; }
geo $inside { default 0; 127.0.0.0/8 1; }
limit_req_zone $http_x_client zone=clients:1m rate=1r/m;
limit_conn_zone $http_x_client zone=connections:1m;
`

const authLocation = `location = /_auth {
internal;
proxy_pass_request_body off;
proxy_set_header Content-Length "";
proxy_set_header Host $host;
proxy_pass http://auth/check;
}
`

// passes is how ingress-nginx passes a request on.
const passes = `
client_max_body_size 1m;
proxy_set_header Host $http_host;
proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection $connection_upgrade;
proxy_set_header X-Request-ID $http_x_request_id;
proxy_set_header X-Real-IP $remote_addr;
proxy_set_header X-Forwarded-For $remote_addr;
proxy_set_header X-Forwarded-Host $http_host;
proxy_set_header X-Forwarded-Port 80;
proxy_set_header X-Forwarded-Proto $scheme;
proxy_set_header X-Forwarded-Scheme $scheme;
proxy_set_header X-Scheme $scheme;
proxy_set_header X-Original-Forwarded-For $http_x_forwarded_for;
proxy_set_header Proxy "";
proxy_http_version 1.1;
proxy_cookie_domain off;
proxy_cookie_path off;
proxy_pass http://backend;
proxy_redirect off;
`

func hostOf(i int) string { return fmt.Sprintf("c%d.test", i) }

// startReference runs a plain NGINX with a server for each case until the test ends. It
// leaves out the pairs that NGINX rejects, and returns the others.
func startReference(t *testing.T, cases []snippetCase) (*side, []snippetCase) {
	t.Helper()
	s := &side{address: fmt.Sprint("127.0.0.1:", porttest.Free(t)), backend: startRecorder(t), auth: startRecorder(t)}
	capabilities, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hg-reference-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	conf := filepath.Join(dir, "nginx.conf")
	for rejected := true; rejected; {
		text := reference(s.address, s.backend, s.auth, dir, capabilities.Modules, cases)
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cases, rejected = withoutRejected(t, capabilities.Binary, conf, text, cases)
	}
	command := exec.Command(capabilities.Binary, "-e", "stderr", "-c", conf)
	command.Stderr = t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		s.close()
		_ = command.Process.Kill()
		<-ended
	})
	headgatetest.Eventually(t, "the plain NGINX listens", func() bool {
		select {
		case <-ended:
			t.Fatal("the plain NGINX ended")
		default:
		}
		connection, err := net.Dial("tcp", s.address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	return s, cases
}

var errorLine = regexp.MustCompile(`\[emerg\].* in \S+:(\d+)\n`)

// withoutRejected leaves out the case that NGINX rejects, if it is a pair.
func withoutRejected(t *testing.T, binary, conf, text string, cases []snippetCase) (left []snippetCase, rejected bool) {
	t.Helper()
	output, err := exec.Command(binary, "-t", "-e", "stderr", "-c", conf).CombinedOutput()
	if err == nil {
		return cases, false
	}
	match := errorLine.FindSubmatch(output)
	if match == nil {
		t.Fatalf("%v: %s", err, output)
	}
	line, _ := strconv.Atoi(string(match[1]))
	before := strings.Join(strings.SplitN(text, "\n", line+1)[:line], "\n")
	i := strings.Count(before, "server_name c") - 1
	if i < 0 {
		t.Fatalf("%s", output)
	}
	if !cases[i].pair {
		t.Errorf("%s: %s", cases[i].name, output)
	}
	return slices.Delete(slices.Clone(cases), i, i+1), true
}

// startHeadgate runs Headgate with an Ingress for each case until the test ends.
func startHeadgate(t *testing.T, cases []snippetCase) *side {
	t.Helper()
	s := &side{backend: startRecorder(t), auth: startRecorder(t)}
	known := map[string]shape{}
	for _, s := range shapes(s.auth) {
		known[s.name] = s
	}
	var manifests strings.Builder
	manifests.WriteString(headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical",
		"http-snippet: "+administrator))
	manifests.WriteString(headgatetest.Service("a") + headgatetest.Endpoints("a", s.backend.Address))
	for i, c := range cases {
		annotations := known[c.shape].annotations
		if c.server != "" {
			annotations = append(annotations, "server-snippet: "+c.server)
		}
		if c.location != "" {
			annotations = append(annotations, "configuration-snippet: "+c.location)
		}
		manifests.WriteString(headgatetest.Ingress(fmt.Sprint("i", i), hostOf(i), "/", "a", annotations...))
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: manifests.String()})
	s.address = headgatetest.Address(g.HTTP)
	t.Cleanup(s.close)
	return s
}
