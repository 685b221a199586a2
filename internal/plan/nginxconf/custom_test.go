package nginxconf_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

const templateHead = "{{- /* headgate template v1 */ -}}\n"

func renderBy(t testing.TB, text string) (string, error) {
	t.Helper()
	globals := usualGlobals()
	globals.Process.Snippets.Template, _ = model.NewAdminText(text)
	files, err := nginxconf.Render(environment(t), globals, nil, false, dictionaries)
	return string(files[nginxconf.File]), err
}

// TestCustomTemplate: the built-in template gives the same, and may be changed.
func TestCustomTemplate(t *testing.T) {
	t.Parallel()
	usual := render(t, environment(t), usualGlobals(), nil, dictionaries)
	if got, err := renderBy(t, nginxconf.Template()); err != nil || got != usual {
		t.Errorf("the built-in template gives something else: %v", err)
	}
	changed := strings.NewReplacer("worker_connections {{ .Worker.ConnectionCount }};", "worker_connections 100;", "    default_type {{ .Process.DefaultType }};\n", "    etag off;\n", "location @nginx_status {", "location = /mine { return 204; }\nlocation @nginx_status {").Replace(nginxconf.Template())
	got, err := renderBy(t, changed)
	if err != nil || !strings.Contains(got, "worker_connections 100;") || !strings.Contains(got, "etag off;") || strings.Contains(got, "default_type") {
		t.Errorf("%v", err)
	}
}

// TestBadTemplate: what is refused, with line and reason.
func TestBadTemplate(t *testing.T) {
	t.Parallel()
	whole := nginxconf.Template()
	for name, c := range map[string]struct {
		text   string
		line   int
		reason string
	}{
		"empty":         {"\n", 1, "must begin with {{- /* headgate template v1 */ -}}"},
		"version":       {"{{- /* headgate template v2 */ -}}\n", 1, "is written for version 2 of templates: must be 1"},
		"ingress-nginx": {"{{ $all := . }}\n{{ $cfg := $all.Cfg }}", 1, "this is a template of ingress-nginx"},
		"long":          {templateHead + strings.Repeat("#", 2<<20), 0, "bytes are too many"},
		"syntax":        {templateHead + "\n{{ if }}", 3, "missing value for if"},
		"field":         {templateHead + "{{ .Nothing }}", 2, "can't evaluate field Nothing"},
		"function":      {templateHead + "\n{{ with .RunDir }}{{ printf \"%s\" . }}{{ end }}", 3, `function "printf" is not for templates`},
		"call":          {templateHead + "{{ call .RunDir }}", 2, `function "call" is not for templates`},
		"loop":          {templateHead + "{{ range 2000000000 }}{{ end }}", 0, "runs more than 1000000 blocks"},
		"recursion":     {templateHead + `{{ define "a" }}{{ range .Addresses }}{{ template "a" $ }}{{ template "a" $ }}{{ end }}{{ end }}{{ template "a" . }}`, 0, `the template "a" calls itself`},
		"memory":        {templateHead + `{{ $a := "xxxxxxxx" }}{{ range 100 }}{{ $a = print $a $a }}{{ end }}`, 2, "is too long"},
		"output":        {templateHead + `{{ $a := "x" }}{{ range 15 }}{{ $a = print $a $a }}{{ end }}{{ range 100000 }}{{ $a }}{{ end }}`, 0, "the result is longer than"},
		"truncated":     {whole[:len(whole)/2], 0, ""},
		"nothing":       {templateHead + "events {}", 0, "lacks what Headgate needs: "},
		"unbalanced":    {whole + "\n}", 0, `unexpected "}"`},
		"no API":        {strings.Replace(whole, `listen unix:{{ .RunDir }}/sock/api.sock;`, "", 1), 0, "lacks what Headgate needs: "},
		"no dictionary": {strings.Replace(whole, `lua_shared_dict hg_control 1m;`, "", 1), 0, "lacks what Headgate needs: http > lua_shared_dict hg_control 1m"},
		"no routing":    {strings.ReplaceAll(whole, `server_rewrite_by_lua_block { {{ template "lookalikes" . }}require("headgate.route").run() }`, ""), 0, "lacks what Headgate needs: http > server at "},
	} {
		_, err := renderBy(t, c.text)
		var wrong *nginxconf.TemplateError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, c.reason) || name != "truncated" && wrong.Line != c.line {
			t.Errorf("%s: %v", name, err)
		} else if name != "truncated" {
			t.Logf("%s: line %d: %.150s", name, wrong.Line, wrong.Reason)
		}
	}
}

// TestTemplateNeedsGuards: in the test of a template there are all kinds of locations.
func TestTemplateNeedsGuards(t *testing.T) {
	t.Parallel()
	env, globals := realEnvironment(t), usualGlobals()
	try := func(text string) error {
		globals.Process.Snippets.Template, _ = model.NewAdminText(text)
		_, err := nginxconf.Whole(env, globals, dictionaries)
		return err
	}
	if err := try(nginxconf.Template()); err != nil {
		t.Fatal(err)
	}
	for _, guard := range []string{"auth_request _check_{{ .Check }};", "error_page 401 = @refused;", "{{ .Prefix }}ignore_headers X-Accel-Redirect;", "access_by_lua_block { require(\"headgate.access\").run("} {
		if !strings.Contains(nginxconf.Template(), guard) {
			t.Fatalf("the template has no %s", guard)
		}
		if err := try(strings.Replace(nginxconf.Template(), guard, "# "+guard, 1)); err == nil {
			t.Errorf("%s is not needed", guard)
		}
	}
}

// TestTemplateData: docs/template.md lists what templates can read.
func TestTemplateData(t *testing.T) {
	t.Parallel()
	const page, begin = "../../../docs/template.md", "<!-- Written by `go test ./internal/plan/nginxconf -run TestTemplateData -update`. -->\n\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), begin)
	want := before + begin + nginxconf.TemplateData()
	if !found {
		t.Fatalf("%s lacks %q", page, begin)
	}
	if string(text) == want {
		return
	}
	if !*update {
		t.Errorf("%s is not what templates can read (go test -update writes it); a change needs another version of templates if it takes something away", page)
		return
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
