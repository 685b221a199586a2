package lint_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/headgate/headgate/internal/command/lint"
	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/usage"
)

var update = flag.Bool("update", false, "update the golden files")

// TestLint runs commands on the files of each case. A section "$ headgate …" has the
// output of the command, with standard error behind "! ", and its exit status.
func TestLint(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			golden, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			commands := 0
			for i, f := range archive.Files {
				if !strings.HasPrefix(f.Name, "$ headgate ") {
					writeFile(t, f.Name, f.Data)
					continue
				}
				commands++
				got := command(strings.Fields(f.Name)[2:])
				if !*update && got != string(f.Data) {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s\n(go test -update writes it)", f.Name, got, f.Data)
				}
				archive.Files[i].Data = []byte(got)
			}
			if commands == 0 {
				t.Error("no command")
			}
			if *update {
				writeFile(t, golden, txtar.Format(archive))
			}
		})
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs headgate and returns its output and exit status.
func command(args []string) string {
	var out, errs bytes.Buffer
	c := &cobra.Command{Use: "headgate", Args: usage.OnlyCommands, SilenceUsage: true, SilenceErrors: true, RunE: func(*cobra.Command, []string) error { return nil }}
	c.AddCommand(lint.Command(release.Build{Version: "development"}))
	usage.ExplainFlagErrors(c)
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&errs)
	status := usage.Report(&errs, c.Name(), c.Execute())
	for line := range strings.Lines(errs.String()) {
		out.WriteString("! " + line)
	}
	fmt.Fprintf(&out, "status %d\n", status)
	return out.String()
}
