package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed backend.conf.tmpl
var backendTemplate string

//go:embed static.conf.tmpl
var staticTemplate string

// A plainNginx is an NGINX without Headgate.
type plainNginx struct {
	Dir, User string
	Modules   []string
	Port      int
	Backend   int
	// StreamModule is for stream.conf.tmpl.
	StreamModule string
	AccessLog    bool
	// Counted runs a single process, whose instructions are counted.
	Counted bool
	// KeepsConnections is set where clients keep a connection for any number of requests.
	KeepsConnections bool
	// TLS is what Headgate's nginx.conf says of it, none for no TLS; TLSPort is for
	// static.conf.tmpl.
	TLS     []string
	TLSPort int
	// Verifying are names for which a client certificate is required, of an authority in
	// DIR/NAME.crt, for handshake.conf.tmpl.
	Verifying []string
	// HTTP3 opens it at TLSPort, for static.conf.tmpl.
	HTTP3 bool
	// Hands are further servers of static.conf.tmpl.
	Hands map[int]hand
	// Hosts have a server each in static.conf.tmpl, and Endpoints
	// is where requests for all of them are passed on to. GRPCHost is that of calls to GRPC.
	Hosts, Endpoints []string
	GRPCHost, GRPC   string
	// Servers are those of peers/generated.conf.tmpl.
	Servers []generatedServer
	// Addresses, and the port of what closes connections, are for protocols.conf.tmpl.
	Addresses   []string
	ClosingPort int
}

// startBackend starts the NGINX that answers what is proxied. It shares the
// core of the load.
func (s *stage) startBackend(ctx context.Context) error {
	pid, port, err := s.startPlain(ctx, "backend", backendTemplate, plainNginx{})
	if err != nil {
		return err
	}
	s.backend = port
	return pin(pid, loadCore)
}

// startStatic starts the NGINX that Headgate is compared with.
func (s *stage) startStatic(ctx context.Context, name string, accessLog bool) (instance, error) {
	pid, port, err := s.startPlain(ctx, name, staticTemplate, plainNginx{Backend: s.backend, AccessLog: accessLog})
	if err != nil {
		return instance{}, fmt.Errorf("start the static NGINX: %w", err)
	}
	return instance{port: port, worker: pid}, nil
}

func (s *stage) startPlain(ctx context.Context, name, text string, values plainNginx) (pid, port int, err error) {
	file, port, err := s.writePlain(name, text, values)
	if err != nil {
		return 0, 0, err
	}
	pid, err = s.startNginx(ctx, name, file, port)
	return pid, port, err
}

// writePlain writes dir/NAME/nginx.conf.
func (s *stage) writePlain(name, text string, values plainNginx) (file string, port int, err error) {
	ports, err := freePorts(1)
	if err != nil {
		return "", 0, err
	}
	values.Dir, values.Port = filepath.Join(s.dir, name), ports[0]
	conf, err := s.renderPlain(text, values)
	if err != nil {
		return "", 0, err
	}
	if err := os.MkdirAll(values.Dir, 0o711); err != nil {
		return "", 0, err
	}
	file = filepath.Join(values.Dir, "nginx.conf")
	return file, ports[0], os.WriteFile(file, []byte(conf), 0o600)
}

// renderPlain is the text of an nginx.conf.
func (s *stage) renderPlain(text string, values plainNginx) (string, error) {
	values.Modules = s.nginx.Modules
	if os.Getuid() == 0 {
		values.User = "nobody nogroup"
	}
	return render(text, values)
}

// render executes a template.
func render(text string, values any) (string, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, values)
	return out.String(), err
}

// startNginx starts NGINX with a configuration in its own directory, and returns its
// worker once it takes connections.
func (s *stage) startNginx(ctx context.Context, name, file string, port int) (int, error) {
	dir := filepath.Dir(file)
	p, err := s.start(name, s.nginx.Binary, "-p", dir, "-c", file, "-e", "stderr")
	if err != nil {
		return 0, err
	}
	if err := p.until(ctx, "listening", func() bool { return listens(port) }); err != nil {
		return 0, err
	}
	pidFile := filepath.Join(dir, "nginx.pid")
	pid := 0
	err = p.until(ctx, "running its worker", func() bool {
		pid, err = worker(pidFile)
		return err == nil
	})
	return pid, err
}

// checkSameWork rejects a static NGINX whose location proxies in another way than
// Headgate's default one does, which would make the comparison worthless.
func checkSameWork(static, headgate string) error {
	// Headgate's variable is another name for the same, where no feature sets it.
	headgate = strings.ReplaceAll(otherProtocols.ReplaceAllString(headgate, ""), "$hg_backend_host", "$hg_host")
	ours, theirs := proxying(headgate), proxying(static)
	for _, line := range ours {
		if !slices.Contains(theirs, line) {
			return fmt.Errorf("bench/static.conf.tmpl lacks what Headgate's nginx.conf has: %s", line)
		}
	}
	for _, line := range theirs {
		if !slices.Contains(ours, line) {
			return fmt.Errorf("bench/static.conf.tmpl has what Headgate's nginx.conf lacks: %s", line)
		}
	}
	return nil
}

// otherProtocols matches Headgate's blocks for backends that are not asked by plain HTTP: they keep other
// numbers of connections.
var otherProtocols = regexp.MustCompile(`(?m)^ +upstream hg_(?:https|grpcs?)(?:_\S*)? \{\n(?: {5,}.*\n)*    \}\n`)

// proxying lists the directives on how requests are passed on, up to the end
// of the default location.
func proxying(conf string) []string {
	if i := strings.Index(conf, "location / {"); i >= 0 {
		end := strings.Index(conf[i:], "}")
		conf = conf[:i+max(end, 0)]
	}
	directive := regexp.MustCompile(`^(proxy_(set_header|buffer|http|request|redirect|next|ignore)|more_clear|keepalive|client_)`)
	var found []string
	for line := range strings.Lines(conf) {
		line = strings.TrimSpace(line)
		if directive.MatchString(line) && !strings.Contains(line, "_temp_path") {
			found = append(found, line)
		}
	}
	return found
}
