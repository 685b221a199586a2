package main

import (
	"strings"
	"testing"
)

// TestMisspeltCommands: an error names the nearest command, also if flags of that command
// follow.
func TestMisspeltCommands(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"headgate lnit":                          `unknown command "lnit" for "headgate": did you mean lint?`,
		"headgate lnit -f x":                     `unknown command "lnit" for "headgate": did you mean lint?`,
		"headgate --v=2 lnit":                    `unknown command "lnit" for "headgate": did you mean lint?`,
		"headgate something":                     `unknown command "something" for "headgate"`,
		"headgate something -f x":                `unknown command "something" for "headgate"`,
		"headgate dbg bakends":                   `unknown command "bakends" for "headgate dbg": did you mean backends?`,
		"headgate dbg hosts gte x":               `unknown command "gte" for "headgate dbg hosts": did you mean get?`,
		"headgate kube-webhook-certgen create x": `unknown command "x" for "headgate kube-webhook-certgen create"`,
		"dbg confg":                              `unknown command "confg" for "dbg": did you mean conf?`,
		"dbg conf x":                             `unknown command "x" for "dbg conf"`,
		"kube-webhook-certgen creat --host=a":    `unknown command "creat" for "kube-webhook-certgen": did you mean create?`,
	} {
		words := strings.Fields(args)
		command := newProgram(words[0])
		command.SetArgs(words[1:])
		if err := command.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: the error is\n%v, want\n%s", args, err, want)
		}
	}
}
