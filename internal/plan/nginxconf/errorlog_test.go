package nginxconf_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model/logging"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// TestErrorLog: the level of NGINX's log is that of the key, or else the one that the flags say.
// What the process says of itself is never quieter than usual.
func TestErrorLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		debug             bool
		key               string
		process, requests string
	}{
		{false, "", "notice", ""}, {true, "", "debug", ""}, {false, "notice", "notice", ""}, {true, "notice", "notice", ""},
		{false, "debug", "debug", ""}, {false, "emerg", "notice", "stderr emerg"}, {true, "info", "notice", "stderr info"},
	} {
		env, globals := environment(t), usualGlobals()
		env.Debug = c.debug
		globals.Process.ErrorLog.Level, _ = logging.NewErrorLevel(c.key)
		files, err := nginxconf.Render(env, globals, nil, false, dictionaries)
		if err != nil {
			t.Fatal(err)
		}
		conf := string(files[nginxconf.File])
		if !strings.Contains(conf, "\nerror_log stderr "+c.process+";\n") {
			t.Errorf("debug %v, error-log-level %q: the level of the process is not %s", c.debug, c.key, c.process)
		}
		if want := "\n    error_log " + c.requests + ";\n"; strings.Count(conf, "error_log") != 1+strings.Count(conf, want) || (c.requests != "") != strings.Contains(conf, want) {
			t.Errorf("debug %v, error-log-level %q: nginx.conf does not have %q for requests alone", c.debug, c.key, c.requests)
		}
	}
}
