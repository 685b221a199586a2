package featuretest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// hostile is text that means something to NGINX, Lua, HTTP, a shell, a file
// system or a terminal.
var hostile = []string{
	"a\nb", "\n}\nserver { listen 1; }\n#", "a\r\nX-Evil: 1", "\r", `"`, `'`, `\`, "{", "}", "};", "; return 200;", "#", "/* */", "<!-- -->",
	"-- x", "]] os.execute('id') --[[", "]==]", "ngx.say(1)", "a\x00b", strings.Repeat("a", 64<<10), strings.Repeat("a/", 32<<10),
	"\xff\xfe", "\u2028", "\u202e", "\x1b[31m", "${", "$", "$http_x", "${http_x}", "$hg_host", "unix:/run/headgate/sock/api.sock",
	"http://unix:/run/headgate/sock/api.sock:/", "../../etc/passwd", "/../", "%0d%0aX-Evil: 1", "%00", "{{.}}", "`id`", "$(id)", "|", "*",
	"~^(a+)+$", "(?{1})", "[", "(*UTF)", "-1", "1e9", "99999999999999999999", "NaN", "data:,x", "javascript:alert(1)",
}

// Hostile are hostile values: alone, and between a good one and itself, which a
// check of only a value's start or only its end lets pass.
func Hostile(good string) []string {
	values := make([]string, 0, 2*len(hostile))
	for _, h := range hostile {
		if strings.TrimSpace(h) != "" {
			values = append(values, h)
		}
		if good != "" {
			values = append(values, good+h+good)
		}
	}
	return values
}

// Beside are cases with an annotation that differ in what stands beside it: those
// first that need no keys, and of these that have most annotations. Where no case
// has the annotation there is one with nothing beside it.
func Beside(cases []Case, annotation string) []Case {
	var beside []Case
	names := map[string]bool{}
	for _, c := range cases {
		all := fmt.Sprint(slices.Sorted(maps.Keys(c.Annotations)), slices.Sorted(maps.Keys(c.Keys)))
		if _, ok := c.Annotations[annotation]; ok && !names[all] {
			beside, names[all] = append(beside, c), true
		}
	}
	slices.SortStableFunc(beside, func(a, b Case) int {
		return cmp.Or(cmp.Compare(len(a.Keys), len(b.Keys)), cmp.Compare(len(b.Annotations), len(a.Annotations)))
	})
	if beside == nil {
		return []Case{{Annotations: map[string]string{}}}
	}
	return beside
}
