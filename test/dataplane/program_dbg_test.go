package dataplane_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// unsteadyDebug matches what differs between runs, or with any new setting.
var unsteadyDebug = regexp.MustCompile(`("pid": |\bp_|"version": "|"holds": "|CERTIFICATE-----\n)[0-9A-Za-z+/=\n]+|(expires on )[0-9TZ:-]+`)

// checkDebug runs dbg, started by this name, on a running instance. The sections of
// testdata/dbg.txtar after in.yaml have arguments as their name and what dbg writes as their
// content.
func checkDebug(t *testing.T, binary string) {
	t.Parallel()
	const golden = "testdata/dbg.txtar"
	// The flag is that of featuretest.
	update := flag.Lookup("update").Value.String() == "true"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	pair := headgatetest.NewKeyPair(t, "secure.test", "secure.test")
	p := startProgram(t, binary, string(archive.Files[0].Data)+headgatetest.TLSSecret("pair", pair))
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	program := filepath.Join(t.TempDir(), "dbg")
	if err := os.Symlink(binary, program); err != nil {
		t.Fatal(err)
	}
	for i, f := range archive.Files[1:] {
		got := p.debug(program, strings.Fields(f.Name)...)
		if strings.Contains(got, "PRIVATE KEY") {
			t.Errorf("dbg %s shows a private key", f.Name)
		}
		got = unsteadyDebug.ReplaceAllString(got, "$1$2…")
		if update {
			archive.Files[i+1].Data = []byte(got)
		} else if got != string(f.Data) {
			t.Errorf("dbg %s: got\n%s\nwant\n%s\n(go test -run 'TestProgram/dbg' -update writes it)", f.Name, got, f.Data)
		}
	}
	if update {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.checkDebugFiles(program, string(pair.Certificate))
	p.checkDebugFinds(binary, program)
}

// debug returns what dbg writes, errors after the output.
func (p *program) debug(program string, args ...string) string {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.Command(program, append([]string{"--run-dir", p.dir}, args...)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	text := stdout.String()
	if stderr.Len() > 0 {
		text += "# " + stderr.String()
	}
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		text += "# " + failed.String() + "\n"
	} else if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// checkDebugFiles compares what is not in the golden file.
func (p *program) checkDebugFiles(program, certificate string) {
	p.t.Helper()
	conf, err := os.ReadFile(filepath.Join(p.dir, "nginx.conf"))
	if err != nil {
		p.t.Fatal(err)
	}
	if got := p.debug(program, "conf"); got != string(conf) {
		p.t.Errorf("dbg conf is not nginx.conf:\n%s", got)
	}
	if got := p.debug(program, "certs", "get", "secure.test"); !strings.HasPrefix(got, certificate) || certificate == "" {
		p.t.Errorf("dbg certs: got\n%s\nwant\n%s", got, certificate)
	}
	if got := p.debug(program, "explain", "http://shop.test/cart"); !strings.Contains(got, "\nRoute        prefix /cart -> default/cart/http\n") {
		p.t.Errorf("dbg explain: %s", got)
	}
}

// checkDebugFinds: without flags, dbg and explain find the only instance. Those of other
// tests may run too: then it is among those in the error.
func (p *program) checkDebugFinds(binary, program string) {
	p.t.Helper()
	for _, c := range []struct {
		command []string
		says    string
	}{
		{[]string{program, "hosts"}, "shop.test\n"},
		{[]string{binary, "dbg", "hosts", "list"}, "shop.test\n"},
		{[]string{binary, "explain", "http://shop.test/cart"}, "default/cart/http"},
	} {
		output, err := exec.Command(c.command[0], c.command[1:]...).CombinedOutput()
		text := string(output)
		if err == nil && !strings.Contains(text, c.says) || err != nil && !(strings.Contains(text, " controllers run here: ") && strings.Contains(text, p.dir)) {
			p.t.Errorf("%s without --run-dir: %v: %s", c.command, err, text)
		}
	}
}
