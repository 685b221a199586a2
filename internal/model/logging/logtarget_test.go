package logging_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model/logging"
)

// FuzzLogTarget: any target that is taken is one word of nginx.conf that is not a variable nor a
// word of its own, and reads back as itself, for each log.
func FuzzLogTarget(f *testing.F) {
	for _, text := range []string{
		"", "/dev/stdout", "stderr", "/var/log/a.log", "off", "a.log", "memory:32m", "/a b", "/a;b", "/$host", "/a\n", `/a\`, `"/a"`, "/a#", "/a{", "syslog:server=[2001:db8::1]:514",
		"syslog:server=unix:/dev/log,nohostname", "syslog:server=a.test:99999,facility=local7,tag=a_b,severity=info", "syslog:server=", "syslog:server=a,tag=$x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, parse := range map[string]func(string) (logging.Target, error){"access": logging.AccessLogTarget, "error": logging.ErrorLogTarget} {
			target, err := parse(text)
			if err != nil {
				continue
			}
			written := target.String()
			if written != "" && (written != text || !strings.HasPrefix(written, "/") && !strings.HasPrefix(written, "syslog:server=")) {
				t.Errorf("%s: %q is written as %q", name, text, written)
			}
			if i := strings.IndexFunc(written, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`;{}'"\$#`, r) }); i >= 0 {
				t.Errorf("%s: %q has the byte %q", name, written, written[i])
			}
			if again, err := parse(written); written != "" && (err != nil || again != target) {
				t.Errorf("%s: %q reads back as %q: %v", name, written, again, err)
			}
		}
	})
}
