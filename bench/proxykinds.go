package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

//go:embed peers/generated.conf.tmpl
var generatedTemplate string

//go:embed peers/haproxy.cfg.tmpl
var haproxyTemplate string

//go:embed peers/traefik.yaml.tmpl
var traefikTemplate string

//go:embed peers/traefik-hosts.yaml.tmpl
var traefikHostsTemplate string

//go:embed peers/caddy.json.tmpl
var caddyTemplate string

//go:embed peers/skipper.eskip.tmpl
var skipperTemplate string

// proxyKinds are all, the one that others are compared with first.
func proxyKinds() []*proxyKind {
	return []*proxyKind{
		{name: "NGINX by hand", files: nginxFiles(staticTemplate), command: nginxCommand, reload: reloadNginx},
		{name: "Headgate", files: headgateFiles, command: headgateCommand, beside: true},
		{name: "ingress-nginx's way", files: nginxFiles(generatedTemplate), command: nginxCommand, reload: reloadNginx},
		{name: "HAProxy", program: "haproxy", files: haproxyFiles, command: haproxyCommand, reload: reloadHAProxy},
		{name: "Traefik", program: "traefik", files: traefikFiles, command: traefikCommand},
		{name: "Caddy", program: "caddy", files: caddyFiles, command: caddyCommand, reload: reloadCaddy},
		{name: "Skipper", program: "skipper", files: skipperFiles, command: skipperCommand, noGRPC: true},
	}
}

// withCertificate adds the certificate to files.
func (p *runningProxy) withCertificate(files map[string]string) map[string]string {
	files["tls.crt"], files["tls.key"] = string(p.pair.chain), string(p.pair.key)
	return files
}

// rendered are files made from templates.
func (p *runningProxy) rendered(templates map[string]string) (map[string]string, error) {
	files := map[string]string{}
	for name, text := range templates {
		var err error
		if files[name], err = render(text, p); err != nil {
			return nil, err
		}
	}
	return p.withCertificate(files), nil
}

// A generatedServer is one of generated.conf.tmpl.
type generatedServer struct{ Host, Service, Protocol string }

func nginxFiles(template string) func(*stage, *runningProxy) (map[string]string, error) {
	return func(s *stage, p *runningProxy) (map[string]string, error) {
		values := plainNginx{
			Dir: p.Dir, Port: p.HTTP, TLSPort: p.HTTPS, TLS: p.TLS, KeepsConnections: true,
			Hosts: p.Hosts, Endpoints: p.Endpoints, GRPCHost: p.GRPCHost, GRPC: p.GRPC,
		}
		for _, host := range p.Hosts {
			values.Servers = append(values.Servers, generatedServer{host, "web", "proxy"})
		}
		values.Servers = append(values.Servers, generatedServer{p.GRPCHost, "calls", "grpc"})
		conf, err := s.renderPlain(template, values)
		return p.withCertificate(map[string]string{"nginx.conf": conf}), err
	}
}

func nginxCommand(s *stage, p *runningProxy) []string {
	return []string{s.nginx.Binary, "-p", p.Dir, "-c", filepath.Join(p.Dir, "nginx.conf"), "-e", "stderr"}
}

// reloadNginx tests the configuration before, as users and controllers do.
func reloadNginx(ctx context.Context, s *stage, p *runningProxy) error {
	if err := p.run(ctx, s, append(nginxCommand(s, p), "-t")...); err != nil {
		return err
	}
	return p.process.cmd.Process.Signal(syscall.SIGHUP)
}

func (p *runningProxy) headgatePlace() place {
	return place{folder: filepath.Join(p.Dir, "manifests"), runDir: filepath.Join(p.Dir, "run"), http: p.HTTP, https: p.HTTPS, health: p.Admin}
}

func headgateFiles(_ *stage, p *runningProxy) (map[string]string, error) {
	secret := tlsSecret(namespace, "tls", p.pair)
	secret.APIVersion, secret.Kind = "v1", "Secret"
	text, err := yaml.Marshal(secret)
	if err != nil {
		return nil, fmt.Errorf("write the certificate: %w", err)
	}
	calls := strings.ReplaceAll(headgateService([]string{p.GRPC}), "name: web", "name: calls") + "---\n" +
		strings.ReplaceAll(ingress("calls", p.GRPCHost, annotated([]string{"backend-protocol: GRPC"})), "name: web", "name: calls")
	files := map[string]string{
		"manifests/options.yaml": configMap(false, keepConnections), "manifests/tls.yaml": string(text),
		"manifests/web.yaml": headgateService(p.Endpoints), "manifests/calls.yaml": calls,
	}
	for i, host := range p.Hosts {
		name := fmt.Sprintf("i-%05d", i)
		files["manifests/"+name+".yaml"] = ingress(name, host, "")
	}
	return files, nil
}

// headgateService has the endpoints, which listen on the same port.
func headgateService(endpoints []string) string {
	var addresses []string
	port := 0
	for _, endpoint := range endpoints {
		address, number, _ := strings.Cut(endpoint, ":")
		addresses = append(addresses, address)
		// It is one of the benchmark's own.
		_, _ = fmt.Sscan(number, &port)
	}
	return strings.Replace(service(port), "[127.0.0.1]", "["+strings.Join(addresses, "]}, {addresses: [")+"]", 1)
}

func headgateCommand(s *stage, p *runningProxy) []string {
	at := p.headgatePlace()
	return append(append([]string{s.headgate}, at.arguments()...), "--manifests-dir", at.folder, "--default-ssl-certificate", namespace+"/tls")
}

func haproxyFiles(_ *stage, p *runningProxy) (map[string]string, error) {
	files, err := p.rendered(map[string]string{"haproxy.cfg": haproxyTemplate})
	if err != nil {
		return nil, err
	}
	files["hosts.map"] = strings.Join(p.Hosts, " web\n") + " web\n" + p.GRPCHost + " calls\n"
	files["tls.pem"] = files["tls.crt"] + files["tls.key"]
	return files, nil
}

// haproxyCommand has a master, which starts a new worker for a new configuration.
func haproxyCommand(_ *stage, p *runningProxy) []string {
	return []string{p.program, "-W", "-f", filepath.Join(p.Dir, "haproxy.cfg")}
}

func reloadHAProxy(ctx context.Context, s *stage, p *runningProxy) error {
	if err := p.run(ctx, s, p.program, "-c", "-f", filepath.Join(p.Dir, "haproxy.cfg")); err != nil {
		return err
	}
	return p.process.cmd.Process.Signal(syscall.SIGUSR2)
}

func traefikFiles(_ *stage, p *runningProxy) (map[string]string, error) {
	return p.rendered(map[string]string{"traefik.yaml": traefikTemplate, "dynamic/hosts.yaml": traefikHostsTemplate})
}

func traefikCommand(_ *stage, p *runningProxy) []string {
	return []string{p.program, "--configFile=" + filepath.Join(p.Dir, "traefik.yaml")}
}

func caddyFiles(_ *stage, p *runningProxy) (map[string]string, error) {
	return p.rendered(map[string]string{"caddy.json": caddyTemplate})
}

func caddyCommand(_ *stage, p *runningProxy) []string {
	return []string{p.program, "run", "--config", filepath.Join(p.Dir, "caddy.json")}
}

// reloadCaddy adds the last host by Caddy's own interface, which is the least that it can be
// sent.
func reloadCaddy(ctx context.Context, _ *stage, p *runningProxy) error {
	route := fmt.Sprintf(`{"match": [{"host": [%q]}], "handle": [{"handler": "invoke", "name": "web"}], "terminal": true}`, p.Hosts[len(p.Hosts)-1])
	url := "http://" + local(p.Admin) + "/config/apps/http/servers/main/routes/0"
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader([]byte(route)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("add a host to Caddy: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		return errors.Join(fmt.Errorf("add a host to Caddy: status %d: %s", response.StatusCode, text), err)
	}
	return nil
}

func skipperFiles(_ *stage, p *runningProxy) (map[string]string, error) {
	return p.rendered(map[string]string{"routes.eskip": skipperTemplate})
}

// Pattern matches a host, written as Skipper itself writes that of an Ingress.
func (p *runningProxy) Pattern(host string) string {
	return "^(" + strings.ReplaceAll(host, ".", "[.]") + "[.]?(:[0-9]+)?)$"
}

func skipperCommand(_ *stage, p *runningProxy) []string {
	return []string{
		p.program, "-address", local(p.HTTPS), "-insecure-address", local(p.HTTP), "-routes-file", filepath.Join(p.Dir, "routes.eskip"),
		"-tls-cert", filepath.Join(p.Dir, "tls.crt"), "-tls-key", filepath.Join(p.Dir, "tls.key"),
		"-support-listener", "", "-metrics-listener", "", "-access-log-disabled", "-disable-metrics-compat", "-runtime-metrics=false",
		"-proxy-preserve-host", "-idle-conns-num", "2560", "-wait-first-route-load", "-suppress-route-update-logs",
		"-forwarded-headers", "X-Forwarded-For,X-Forwarded-Host,X-Forwarded-Proto=http,X-Forwarded-Port=80",
	}
}
