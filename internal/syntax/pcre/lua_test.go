package pcre_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// question is a match for NGINX to try, in hexadecimal digits.
type question struct {
	Pattern string `json:"pattern"`
	Subject string `json:"subject"`
}

// answer is what ngx.re.match returned: an error, groups in hexadecimal digits
// (false for one that took no part), or neither.
type answer struct {
	Error  string `json:"error"`
	Groups []any  `json:"groups"`
}

// TestAsLua compares the results of NGINX and of this package. Debian 12's Lua
// module still has PCRE 1, and gets only the samples with the same result in both.
func TestAsLua(t *testing.T) {
	t.Parallel()
	fixture := newFixture(t)
	var asked []question
	var want []answer
	for _, c := range cases() {
		if c.needs > fixture.alike {
			continue
		}
		text, here := answerHere(c)
		asked = append(asked, question{hex.EncodeToString([]byte(text)), hex.EncodeToString([]byte(c.subject))})
		want = append(want, here)
	}
	for i, got := range fixture.ask(asked) {
		pattern, subject := decode(t, asked[i].Pattern), decode(t, asked[i].Subject)
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%q on %.60q (-here +Lua):\n%s", pattern, subject, diff)
		}
	}
}

// answerHere returns the pattern for Lua, and the answer to expect.
func answerHere(c sample) (string, answer) {
	p, err := pcre.Compile(c.pattern, pcre.Options{Caseless: true})
	if err != nil {
		return c.pattern, answer{Error: "compile"}
	}
	found, err := p.Find(c.subject)
	switch {
	case errors.Is(err, pcre.ErrLimit):
		return p.Text(), answer{Error: "limit"}
	case err != nil:
		return p.Text(), answer{Error: err.Error()}
	}
	var here answer
	for _, at := range found {
		if at[0] < 0 {
			here.Groups = append(here.Groups, false)
		} else {
			here.Groups = append(here.Groups, hex.EncodeToString([]byte(c.subject[at[0]:at[1]])))
		}
	}
	return p.Text(), here
}

func decode(t *testing.T, digits string) string {
	t.Helper()
	text, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fixture is an NGINX that answers questions and ends.
type fixture struct {
	t      *testing.T
	binary string
	dir    string
	// alike is how similar its library is to the one that Go loaded.
	alike alike
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	found, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: its name is long, and NGINX may run in a root of its own that has this /tmp.
	dir, err := os.MkdirTemp("/tmp", "hg-pcre-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fixture{t: t, binary: found.Binary, dir: dir}
	var modules strings.Builder
	for _, file := range found.Modules {
		fmt.Fprintf(&modules, "load_module %s;\n", file)
	}
	f.write("nginx.conf", fmt.Sprintf(conf, dir, dir, modules.String(), pcre.MatchLimit, pcre.JITStack, dir, dir))
	f.ask(nil)
	here, err := pcre.Version()
	if err != nil {
		t.Fatal(err)
	}
	switch there := f.read("version"); {
	case there == here:
		f.alike = same
	case strings.HasPrefix(there, "10."):
		f.alike = both
	}
	return f
}

func (f *fixture) ask(questions []question) []answer {
	f.t.Helper()
	if questions == nil {
		questions = []question{}
	}
	text, err := json.Marshal(questions)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write("questions", string(text))
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, f.binary, "-p", f.dir, "-c", filepath.Join(f.dir, "nginx.conf"))
	if output, err := command.CombinedOutput(); err != nil {
		f.t.Fatalf("NGINX: %v: %s\n%s", err, output, f.read("error.log"))
	}
	var answers []answer
	if err := json.Unmarshal([]byte(f.read("answers")), &answers); err != nil && len(questions) > 0 {
		f.t.Fatal(err)
	}
	if len(answers) != len(questions) {
		f.t.Fatalf("%d answers to %d questions: %s", len(answers), len(questions), f.read("error.log"))
	}
	return answers
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) read(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// conf matches in a worker, since lua_regex_match_limit has its effect there.
const conf = `
daemon off;
master_process off;
pid %s/pid;
error_log %s/error.log notice;
pcre_jit on;
%s
events {}
http {
    access_log off;
    lua_regex_match_limit %d;
    lua_regex_cache_max_entries 10000;
    init_by_lua_block { require("ngx.re").opt("jit_stack_size", %d) }
    init_worker_by_lua_block {
        local ffi = require("ffi")
        local cjson = require("cjson")
        local file = assert(io.open("%s/questions"))
        local questions = cjson.decode(file:read("*a"))
        file:close()
        local function text(digits)
            return (digits:gsub("..", function(byte) return string.char(tonumber(byte, 16)) end))
        end
        local function digits(text)
            return (text:gsub(".", function(byte) return string.format("%%02x", byte:byte()) end))
        end
        local function answer(question)
            local found, err = ngx.re.match(text(question.subject), text(question.pattern), "joi")
            if not found then
                if not err then return { error = "" } end
                if err:find("^pcre2?_compile%%(%%)") then return { error = "compile" } end
                local limit = { ["-8"] = true, ["-27"] = true, ["-46"] = true, ["-47"] = true }
                return { error = limit[err:match("^pcre_exec%%(%%) failed: (.*)$")] and "limit" or err }
            end
            local groups, n = {}, 0
            while found[n] ~= nil do
                groups[n + 1] = found[n] and digits(found[n])
                n = n + 1
            end
            return { error = "", groups = groups }
        end
        local answers = setmetatable({}, cjson.array_mt)
        for i, question in ipairs(questions) do answers[i] = answer(question) end
        local function write(name, content)
            local out = assert(io.open("%s/" .. name, "w"))
            out:write(content)
            out:close()
        end
        pcall(ffi.cdef, "const char *ngx_http_lua_ffi_pcre_version(void);")
        write("version", ffi.string(ffi.C.ngx_http_lua_ffi_pcre_version()))
        write("answers", cjson.encode(answers))
        os.exit(0)
    }
}
`
