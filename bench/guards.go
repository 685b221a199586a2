package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A guardRow is a guard that lets requests pass: an Ingress with annotations, and what
// the NGINX by hand has for the same work.
type guardRow struct {
	name        string
	annotations []string
	headers     []string
	// zones, server and location are directives of the NGINX by hand, beside and within its
	// server. Without any it has nothing of the kind. AUTH is the port of the authentication
	// service, and DIR a directory with the file of users.
	zones, server, location []string
	// refused are headers with which both sides refuse a client at otherAddress, nil if
	// they don't.
	refused []string
	// digest has each request signed.
	digest bool
	// dear: a tenth of the requests is counted.
	dear bool
}

// otherAddress is of clients that address lists don't let pass.
const otherAddress = "127.0.0.2"

// A guardGroup has a Headgate of its own, with keys of the ConfigMap, and an NGINX by hand.
type guardGroup struct {
	name    string
	options []string
	rows    []guardRow
	// rules has the NGINX by hand read the rules of ModSecurity that Headgate has.
	rules bool
	// uncounted is set where counting instructions takes minutes.
	uncounted bool
}

func guardGroups() []guardGroup {
	blocked := append(networks(manyNetworks), otherAddress+"/32")
	return []guardGroup{
		{name: "annotations", rows: guardRows()},
		{name: "networks", options: []string{fmt.Sprintf("block-cidrs: %q", strings.Join(blocked, ","))}, rows: []guardRow{{
			name: "block-cidrs, 10,001 networks", refused: []string{}, zones: geo("$blocked", blocked), server: []string{"if ($blocked) { return 403; }"},
		}}},
		{name: "headers", options: []string{`block-user-agents: "bad-bot,~*scrap(er|y)"`, `block-referers: "~*spam"`}, rows: []guardRow{{
			name: "block-user-agents and block-referers", headers: []string{"User-Agent: Mozilla/5.0 (X11; Linux x86_64)", "Referer: https://www.example.com/"}, refused: []string{"User-Agent: a Scraper"},
			zones: []string{
				`map $http_user_agent $bad_agent { default 0; bad-bot 1; "~*scrap(er|y)" 1; }`,
				`map $http_referer $bad_referer { default 0; ~*spam 1; }`,
			},
			server: []string{"if ($bad_agent) { return 403; }", "if ($bad_referer) { return 403; }"},
		}}},
		{name: "forwarded", options: []string{`use-forwarded-headers: "true"`}, rows: []guardRow{{
			name: "use-forwarded-headers", headers: []string{"X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: http"},
			server: []string{"set_real_ip_from 0.0.0.0/0;", "real_ip_header X-Forwarded-For;", "real_ip_recursive on;"},
		}}},
		{name: "modsecurity", rules: true, rows: []guardRow{{
			name: "ModSecurity", annotations: []string{"enable-modsecurity: true"}, headers: browser, location: []string{"modsecurity on;"}, dear: true,
		}}},
		{name: "core-rules", rules: true, uncounted: true, rows: []guardRow{{
			name: "ModSecurity, core rules", annotations: []string{"enable-modsecurity: true", "enable-owasp-core-rules: true"},
			headers: browser, location: []string{"modsecurity on;"}, dear: true,
		}}},
	}
}

// browser has the headers without which the core rules count a request as suspicious.
var browser = []string{"User-Agent: Mozilla/5.0", "Accept: */*"}

// guardRows need no options.
func guardRows() []guardRow {
	listed := append(networks(manyNetworks), "127.0.0.1/32")
	return []guardRow{
		{name: "no guard"},
		{name: "basic authentication", annotations: []string{"auth-type: basic", "auth-secret: users", "auth-realm: " + realm}, headers: []string{"Authorization: Basic dXNlcjpwYXNz"}, refused: []string{},
			location: []string{"auth_basic " + realm + ";", "auth_basic_user_file DIR/users;"}},
		{name: "digest authentication", annotations: []string{"auth-type: digest", "auth-secret: digests", "auth-realm: " + realm}, digest: true},
		{name: "external authentication, cached", annotations: []string{"auth-url: http://auth.bench.svc.cluster.local/", "auth-cache-key: $host"},
			zones: []string{"proxy_cache_path DIR/cache keys_zone=auth:1m;"}, location: []string{"auth_request /auth;"}, server: []string{
				`location = /auth { internal; proxy_pass http://127.0.0.1:AUTH/; proxy_pass_request_body off; proxy_set_header Content-Length ""; ` +
					"proxy_cache auth; proxy_cache_key $host; proxy_cache_valid 200 5m; }",
			}},
		{name: "address list", annotations: []string{"allowlist-source-range: 127.0.0.1"}, refused: []string{}, location: []string{"allow 127.0.0.1;", "deny all;"}},
		{name: "address list, not denied", annotations: []string{"denylist-source-range: " + otherAddress}, refused: []string{}, location: []string{"deny " + otherAddress + ";"}},
		{name: "address list, 10,001 networks", annotations: []string{"allowlist-source-range: " + strings.Join(listed, ",")}, refused: []string{},
			zones: geo("$listed", listed), location: []string{"if ($listed = 0) { return 403; }"}},
		{name: "limit-rps and limit-rpm", annotations: []string{"limit-rps: 1000000", "limit-rpm: 60000000"},
			zones: []string{
				"limit_req_zone $binary_remote_addr zone=second:5m rate=1000000r/s;", "limit_req_zone $binary_remote_addr zone=minute:5m rate=60000000r/m;",
			},
			location: []string{"limit_req zone=second burst=5000000 nodelay;", "limit_req zone=minute burst=300000000 nodelay;"}},
		{name: "limit-connections", annotations: []string{"limit-connections: 1000"},
			zones: []string{"limit_conn_zone $binary_remote_addr zone=connections:5m;"}, location: []string{"limit_conn connections 1000;"}},
		{name: "limit-rate", annotations: []string{"limit-rate: 1000000"}, location: []string{"limit_rate 1000000k;"}},
		{name: "custom-http-errors, none", annotations: []string{"custom-http-errors: 404,503"},
			location: []string{"proxy_intercept_errors on;", "error_page 404 503 @errors;"}, server: []string{"location @errors { proxy_pass http://web; }"}},
	}
}

const (
	realm = "bench"
	// manyNetworks are as many as a long list has.
	manyNetworks = 10000
)

// networks are of documents and never the clients'.
func networks(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("10.%d.%d.0/28", i/250, i%250))
	}
	return list
}

// geo sets a variable to 1 for addresses in the networks, and to 0 for others.
func geo(variable string, networks []string) []string {
	return []string{"geo " + variable + " { default 0; " + strings.Join(networks, " 1; ") + " 1; }"}
}

func guardHost(i int) string { return fmt.Sprintf("g-%05d.example.com", i) }

// kinds are those of the rows, in their order.
func (g guardGroup) kinds() []requestKind {
	var kinds []requestKind
	for i, row := range g.rows {
		kinds = append(kinds, requestKind{
			name: row.name, host: always(guardHost(i)), headers: row.headers, feature: true, digest: row.digest, dear: row.dear,
		})
	}
	return kinds
}

func guardKinds() []requestKind {
	var kinds []requestKind
	for _, g := range guardGroups() {
		if !g.uncounted {
			kinds = append(kinds, g.kinds()...)
		}
	}
	return kinds
}

// guardSecrets are the users of basic and digest authentication: user, with the password pass.
const guardSecrets = `apiVersion: v1
kind: Secret
metadata: {name: users, namespace: bench}
stringData: {auth: "user:{PLAIN}pass"}
---
apiVersion: v1
kind: Secret
metadata: {name: digests, namespace: bench}
stringData: {auth: "user:bench:8aa69338f15d8844d1e50f46ff54f088"}
`

// prepareGuards writes the folder of a Headgate with the rows of a group.
func (s *stage) prepareGuards(name string, g guardGroup, auth int) (place, error) {
	at, err := s.place(name)
	if err != nil {
		return at, err
	}
	if err := writeFolder(at.folder, 1, s.backend, false, exactRouting); err != nil {
		return at, err
	}
	files := map[string]string{
		"options": configMap(false, append(g.options, keepConnections)...), "secrets": guardSecrets,
		"auth": strings.ReplaceAll(service(auth), "name: web", "name: auth"),
	}
	for i, row := range g.rows {
		guard := fmt.Sprintf("guard-%d", i)
		files[guard] = ingress(guard, guardHost(i), annotated(row.annotations))
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(at.folder, file+".yaml"), []byte(text), 0o644); err != nil {
			return at, fmt.Errorf("write the manifests of guards: %w", err)
		}
	}
	return at, nil
}

// guardsByHand writes what the NGINX by hand of a group needs, in the directory of that name.
// at is the place of a Headgate that runs.
func (s *stage) guardsByHand(name string, g guardGroup, at place, auth int) (plainNginx, map[int]hand, error) {
	fail := func(err error) (plainNginx, map[int]hand, error) {
		return plainNginx{}, nil, fmt.Errorf("prepare the NGINX by hand: %w", err)
	}
	dir := filepath.Join(s.dir, name)
	err := errors.Join(os.Mkdir(dir, 0o711), os.WriteFile(filepath.Join(dir, "users"), []byte("user:{PLAIN}pass\n"), 0o644))
	if err != nil {
		return fail(err)
	}
	var rules []string
	if g.rules {
		conf, err := (&headgate{runDir: at.runDir}).conf()
		if err != nil {
			return fail(err)
		}
		rules = rulesOf(conf)
	}
	ports, err := freePorts(len(g.rows))
	if err != nil {
		return fail(err)
	}
	replacer := strings.NewReplacer("AUTH", fmt.Sprint(auth), "DIR", dir)
	replaced := func(lines []string) []string {
		lines = slices.Clone(lines)
		for i := range lines {
			lines[i] = replacer.Replace(lines[i])
		}
		return lines
	}
	hands := map[int]hand{}
	for i, row := range g.rows {
		one := hand{Upstream: fmt.Sprintf("peers%d", i), Port: ports[i], Zones: replaced(row.zones), Server: replaced(row.server)}
		one.Peers = []string{fmt.Sprintf("server 127.0.0.1:%d;", s.backend)}
		one.Location = slices.Concat(replaced(row.location), rules, []string{"proxy_pass http://" + one.Upstream + ";"})
		hands[i] = one
	}
	return plainNginx{Backend: s.backend, KeepsConnections: true, Hands: hands}, hands, nil
}

// rulesOf are the files of ModSecurity's rules in Headgate's nginx.conf, which has a single
// location's: its own before those that all locations share.
func rulesOf(conf string) []string {
	var own, shared []string
	for _, found := range regexp.MustCompile(`(?m)^( +)(modsecurity_rules_file .*;)$`).FindAllStringSubmatch(conf, -1) {
		list := &own
		if len(found[1]) == len("    ") {
			list = &shared
		}
		if !slices.Contains(*list, found[2]) {
			*list = append(*list, found[2])
		}
	}
	return append(own, shared...)
}

// measureGuards compares each guard with the NGINX by hand that has one of the kind.
func measureGuards(ctx context.Context, s *stage, n size) ([]CPURow, error) {
	defer s.stopFrom(len(s.processes))
	auth, end, err := startAuthService()
	if err != nil {
		return nil, err
	}
	defer end()
	var rows []comparison
	for _, g := range guardGroups() {
		more, err := s.compareGuards(ctx, g, auth)
		if err != nil {
			return nil, fmt.Errorf("guards, %s: %w", g.name, err)
		}
		rows = append(rows, more...)
	}
	return s.takeTurns(ctx, "guards", rows, n)
}

// compareGuards starts what the rows of a group compare. Clients that sign each request are
// too slow to measure it.
func (s *stage) compareGuards(ctx context.Context, g guardGroup, auth int) ([]comparison, error) {
	at, err := s.prepareGuards("guards-"+g.name, g, auth)
	if err != nil {
		return nil, err
	}
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return nil, err
	}
	name := "static-guards-" + g.name
	values, hands, err := s.guardsByHand(name, g, at, auth)
	if err != nil {
		return nil, err
	}
	pid, _, err := s.startPlain(ctx, name, staticTemplate, values)
	if err != nil {
		return nil, fmt.Errorf("start the NGINX by hand: %w", err)
	}
	var rows []comparison
	for i, row := range g.rows {
		if row.digest {
			continue
		}
		sideOf := func(name string, port, worker int) *side {
			return &side{name: name, instance: instance{port: port, worker: worker}, host: guardHost(i), headers: row.headers}
		}
		base, by := sideOf("by hand: "+row.name, hands[i].Port, pid), sideOf(row.name, h.port, h.worker)
		if row.refused != nil {
			if err := errors.Join(base.checkRefusal(row.refused), by.checkRefusal(row.refused)); err != nil {
				return nil, err
			}
		}
		rows = append(rows, comparison{"guard: " + row.name, base, by, 0})
	}
	return rows, nil
}

// checkRefusal shows that a side has the guard: it refuses a client at otherAddress with
// these headers.
func (s *side) checkRefusal(headers []string) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(otherAddress)}}
	client := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}}
	request, err := http.NewRequest(http.MethodGet, "http://"+local(s.port), nil)
	if err != nil {
		return err
	}
	request.Host = s.host
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
		return fmt.Errorf("%s: status %d instead of a refusal", s.name, response.StatusCode)
	}
	return nil
}
