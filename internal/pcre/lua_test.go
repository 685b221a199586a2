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
	"github.com/headgate/headgate/internal/pcre"
)

// question is what NGINX is asked, in hexadecimal digits.
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

// TestAsLua asks an NGINX and this package the same. Debian 12's Lua module
// still has PCRE 1, and gets only what it sees alike.
func TestAsLua(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	var asked []question
	var want []answer
	for _, c := range cases() {
		if c.needs > bed.alike {
			continue
		}
		text, here := answerHere(c)
		asked = append(asked, question{hex.EncodeToString([]byte(text)), hex.EncodeToString([]byte(c.subject))})
		want = append(want, here)
	}
	for i, got := range bed.ask(asked) {
		pattern, subject := decode(t, asked[i].Pattern), decode(t, asked[i].Subject)
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%q on %.60q (-here +Lua):\n%s", pattern, subject, diff)
		}
	}
}

// answerHere is what Lua must be given, and what it is to say.
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

// bed is an NGINX that answers questions and ends.
type bed struct {
	t      *testing.T
	binary string
	dir    string
	// alike says how much its library has of the one that Go loaded.
	alike alike
}

func newBed(t *testing.T) *bed {
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
	b := &bed{t: t, binary: found.Binary, dir: dir}
	var modules strings.Builder
	for _, file := range found.Modules {
		fmt.Fprintf(&modules, "load_module %s;\n", file)
	}
	b.write("nginx.conf", fmt.Sprintf(conf, dir, dir, modules.String(), pcre.MatchLimit, pcre.JITStack, dir, dir))
	b.ask(nil)
	here, err := pcre.Version()
	if err != nil {
		t.Fatal(err)
	}
	switch there := b.read("version"); {
	case there == here:
		b.alike = same
	case strings.HasPrefix(there, "10."):
		b.alike = both
	}
	return b
}

func (b *bed) ask(questions []question) []answer {
	b.t.Helper()
	if questions == nil {
		questions = []question{}
	}
	text, err := json.Marshal(questions)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("questions", string(text))
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, b.binary, "-p", b.dir, "-c", filepath.Join(b.dir, "nginx.conf"))
	if output, err := command.CombinedOutput(); err != nil {
		b.t.Fatalf("NGINX: %v: %s\n%s", err, output, b.read("error.log"))
	}
	var answers []answer
	if err := json.Unmarshal([]byte(b.read("answers")), &answers); err != nil && len(questions) > 0 {
		b.t.Fatal(err)
	}
	if len(answers) != len(questions) {
		b.t.Fatalf("%d answers to %d questions: %s", len(answers), len(questions), b.read("error.log"))
	}
	return answers
}

func (b *bed) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// conf asks within a worker, whose limits are those that count.
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
