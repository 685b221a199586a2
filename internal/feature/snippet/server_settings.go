package snippet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/syntax/quantity"
	"github.com/headgate/headgate/internal/syntax/snippet"
)

// A keyed directive is one of all hosts: NGINX reads it before it knows the host, or the host
// can't have its own here.
type keyed struct {
	directive, key string
	// usual is the value without the key.
	usual string
}

func keyedDirectives() []keyed {
	return []keyed{
		{"large_client_header_buffers", "large-client-header-buffers", "4 8k"},
		{"client_header_buffer_size", "client-header-buffer-size", "1k"},
		{"client_header_timeout", "client-header-timeout", "60"},
		{"underscores_in_headers", "enable-underscores-in-headers", "false"},
		{"ignore_invalid_headers", "ignore-invalid-headers", "true"},
		{"keepalive_timeout", "keep-alive", "75"},
		{"keepalive_requests", "keep-alive-requests", "1000"},
	}
}

// addServerUses adds the directives that the ConfigMap has for all hosts, and those that are
// refused because of what they let in.
func addServerUses(all map[string]use) {
	for _, k := range keyedDirectives() {
		all[k.directive] = use{follow: func(f *follower, s snippet.Setting) {
			if !k.holds(f.values, s) {
				f.warn(s, fmt.Sprintf("it is the same for all hosts: the key %s is %s", k.key, k.value(f.values)))
			}
		}}
	}
	all["real_ip_header"] = use{follow: sameAddress(func(v feature.Values, s snippet.Setting) bool {
		header := feature.TextOf(v, "forwarded-for-header")
		if header == "" {
			header = "X-Forwarded-For"
		}
		return believes(v) && strings.EqualFold(s.Arguments[0], header)
	})}
	all["set_real_ip_from"] = use{follow: sameAddress(func(v feature.Values, s snippet.Setting) bool {
		trusted := strings.FieldsFunc(feature.TextOf(v, "proxy-real-ip-cidr"), func(r rune) bool { return r == ',' || r == ' ' })
		return believes(v) && (len(trusted) == 0 || slices.Contains(trusted, s.Arguments[0]))
	})}
	all["real_ip_recursive"] = use{follow: sameAddress(func(v feature.Values, s snippet.Setting) bool {
		return s.Arguments[0] == "off" || believes(v)
	})}
	all["proxy_pass_request_body"] = use{follow: func(f *follower, s snippet.Setting) {
		if s.Arguments[0] == "off" {
			f.warn(s, "off is not supported")
		}
	}}
	all["proxy_pass_request_headers"] = use{follow: func(f *follower, s snippet.Setting) {
		if s.Arguments[0] == "off" {
			f.deny(s, "off is not supported; use more_clear_input_headers")
		}
	}}
}

// value is what the ConfigMap says.
func (k keyed) value(v feature.Values) string {
	if text := feature.TextOf(v, k.key); text != "" {
		return text
	}
	return k.usual
}

// holds reports whether the ConfigMap says the same, or more.
func (k keyed) holds(v feature.Values, s snippet.Setting) bool {
	is, asked := strings.Fields(k.value(v)), s.Arguments
	if len(is) < len(asked) {
		return false
	}
	for i := range asked {
		if !reaches(is[i], asked[i]) {
			return false
		}
	}
	return true
}

// reaches compares a word of a key with one of a directive: sizes, times and flags.
func reaches(is, asked string) bool {
	if size, limit := quantity.Size(0, 1<<40), int64(0); strings.HasSuffix(asked, "s") {
		n, err := seconds(asked)
		limit, sizeErr := size(strings.TrimSuffix(is, "s"))
		return err == nil && sizeErr == nil && limit >= int64(n)
	} else if have, err := size(is); err == nil {
		limit, err = size(asked)
		return err == nil && have >= limit
	}
	on := map[string]string{"true": "on", "false": "off"}
	return is == asked || on[is] == asked
}

// believes reports whether headers say where a client is.
func believes(v feature.Values) bool {
	return feature.TextOf(v, "use-forwarded-headers") == "true" || feature.TextOf(v, "enable-real-ip") == "true"
}

// sameAddress denies unless the ConfigMap has the client's address come from the same place:
// lists of addresses would allow and deny others.
func sameAddress(same func(feature.Values, snippet.Setting) bool) func(*follower, snippet.Setting) {
	return func(f *follower, s snippet.Setting) {
		if !same(f.values, s) {
			f.deny(s, "where the client's address comes from is the same for all hosts; use the keys use-forwarded-headers, forwarded-for-header and proxy-real-ip-cidr")
		}
	}
}
