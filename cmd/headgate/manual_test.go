package main

import (
	"testing"

	"github.com/headgate/headgate/internal/docs/manual"
)

const cliHead = `# Commands

<!-- Written by ` + "`go test ./cmd/headgate -update`" + ` from the commands of headgate. -->

` + "`headgate`" + ` without a command is the controller. ` + "`headgate COMMAND --help`" + ` shows the help of a command. Errors are written to
standard error. The exit status is 0 after success and 1 otherwise; what differs is said at the command.
`

// TestCLIPageIsCurrent compares docs/cli.md with the commands.
func TestCLIPageIsCurrent(t *testing.T) {
	page := manual.Page{
		Head: cliHead, Root: newProgram("headgate"),
		RootFlags: "The flags of the controller are in [flags.md](flags.md).",
	}.Markdown()
	wantFile(t, "../../docs/cli.md", page)
}
