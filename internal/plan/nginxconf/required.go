package nginxconf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// free are the directives that a template may change and leave out. All others of the built-in one
// it must have, at the same place: Headgate, or access control, needs them.
var free = map[string]bool{
	"worker_connections": true, "multi_accept": true, "worker_rlimit_nofile": true, "worker_shutdown_timeout": true, "pcre_jit": true,
	"sendfile": true, "tcp_nopush": true, "tcp_nodelay": true, "reset_timedout_connection": true,
	"keepalive": true, "keepalive_timeout": true, "keepalive_requests": true, "keepalive_time": true,
	"client_header_timeout": true, "client_body_timeout": true, "client_header_buffer_size": true, "large_client_header_buffers": true,
	"variables_hash_bucket_size": true, "variables_hash_max_size": true, "map_hash_bucket_size": true,
	"default_type": true, "server_tokens": true, "access_log": true, "log_format": true, "log_not_found": true,
	"proxy_connect_timeout": true, "proxy_send_timeout": true, "proxy_read_timeout": true,
	"grpc_connect_timeout": true, "grpc_send_timeout": true, "grpc_read_timeout": true,
	"fastcgi_connect_timeout": true, "fastcgi_send_timeout": true, "fastcgi_read_timeout": true,
	"proxy_buffer_size": true, "proxy_buffers": true, "add_header": true,
}

// checkRendered compares what a template of the administrator gives with what the built-in one does.
func checkRendered(custom, builtIn []byte) error {
	has, err := nginxsyntax.Parse(string(custom))
	if wrong := (*nginxsyntax.Error)(nil); errors.As(err, &wrong) {
		return &TemplateError{Reason: fmt.Sprintf("gives an nginx.conf with a mistake in line %d: %s", wrong.Line, wrong.Reason)}
	}
	wanted, err := nginxsyntax.Parse(string(builtIn))
	if err != nil {
		return fmt.Errorf("read the built-in nginx.conf: %w", err)
	}
	counts := map[string]int{}
	flatten(has, "", func(line string) bool { counts[line]++; return true })
	var missing string
	flatten(wanted, "", func(line string) bool {
		counts[line]--
		if counts[line] < 0 {
			missing = line
		}
		return missing == ""
	})
	if missing != "" {
		return &TemplateError{Reason: "lacks what Headgate needs: " + missing}
	}
	return nil
}

// flatten calls f with each directive that is not free, behind the blocks that it is in, until f
// returns false.
func flatten(list []nginxsyntax.Directive, in string, f func(line string) bool) bool {
	for _, d := range list {
		if free[d.Name] {
			continue
		}
		line := in + d.Name
		for _, a := range d.Args {
			line += " " + oneWord(a)
		}
		if !f(line) {
			return false
		}
		if d.HasBlock && !flatten(d.Block, line+serverName(d)+" > ", f) {
			return false
		}
	}
	return true
}

// oneWord is Lua without its spaces, and other words as they are.
func oneWord(word string) string {
	if strings.ContainsAny(word, " \n") {
		return strconv.Quote(strings.Join(strings.Fields(word), " "))
	}
	return word
}

// serverName distinguishes servers by their first address.
func serverName(d nginxsyntax.Directive) string {
	if d.Name != "server" {
		return ""
	}
	for _, inside := range d.Block {
		if inside.Name == "listen" && len(inside.Args) > 0 {
			return " at " + inside.Args[0]
		}
	}
	return ""
}
