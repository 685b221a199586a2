package main

import (
	"os"
	"testing"

	"github.com/headgate/headgate/internal/manual"
)

const cliHead = `<!-- Written by ` + "`go test ./cmd/headgate -update`" + ` from the commands of headgate. -->

# Commands

` + "`headgate`" + ` without a command is the controller. ` + "`headgate COMMAND --help`" + ` shows the help of a command. Errors are written to
standard error. The exit status is 0 after success and 1 otherwise; what differs is said at the command.
`

// TestCLIPageIsCurrent compares docs/cli.md with the commands.
func TestCLIPageIsCurrent(t *testing.T) {
	const file = "../../docs/cli.md"
	page := manual.Page{
		Head: cliHead, Root: newCommand(),
		RootFlags: "The flags of the controller are in [flags.md](flags.md).",
	}.Markdown()
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Errorf("%s is not what the commands say: go test ./cmd/headgate -run CLIPage -update", file)
	}
}
