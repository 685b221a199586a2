package plan_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/plan"
)

// TestDebug: the level of NGINX's log.
func TestDebug(t *testing.T) {
	for debug, want := range map[bool]string{false: "\nerror_log stderr notice;\n", true: "\nerror_log stderr debug;\n"} {
		env := environment(t)
		env.Debug = debug
		files, err := plan.Render(env, usualGlobals(), nil, false, dictionaries)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(files[plan.NginxConf]), want) {
			t.Errorf("debug %v: nginx.conf lacks %q", debug, want)
		}
	}
}
