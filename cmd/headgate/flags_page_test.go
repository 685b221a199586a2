package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/command/usage"
)

var update = flag.Bool("update", false, "update the golden files")

const pageHead = "# Flags\n\n<!-- Written by `go test ./cmd/headgate -update` from what the program declares. -->\n" + `
The flags of the controller: those of ingress-nginx, with their types and defaults, and some of Headgate's own. Values are given as
` + "`--flag=value` or `--flag value`" + `, true as ` + "`--flag`" + ` alone. At start, all values are checked: an invalid one, an unknown flag and
flags that exclude each other are errors. The other commands, such as ` + "`headgate lint`" + `, list their flags with ` + "`--help`" + `.
`

const pageEffects = `
## Flags without effect

These flags are accepted so that a Deployment for ingress-nginx starts. With another value than the default, a warning is logged.

`

const pageRemoved = `
## Flags that ingress-nginx removed

As in ingress-nginx, the controller does not start with one of them.

`

const pageVariables = `
## Environment variables

| variable | meaning |
| --- | --- |
| ` + "`POD_NAME`, `POD_NAMESPACE`" + ` | the Pod of the controller, by the downward API. They name the Lease and the leader, and are needed for the status of Ingresses by the addresses of Nodes, for Events of the Pod and for ` + "`--enable-topology-aware-routing`" + `. ingress-nginx does not start without them; in a Pod, Headgate logs a warning. |
| ` + "`NGINX_BINARY`" + ` | path of NGINX. Default: ` + "`nginx`" + ` on the path, in ` + "`/usr/sbin` or `/usr/local/sbin`" + `. ` + "`HEADGATE_NGINX`" + ` takes precedence. |
| ` + "`SSL_CERT_FILE`" + ` | file of the system's certificate authorities. Default: ` + "`/etc/ssl/certs/ca-certificates.crt`" + `. |
`

// flagsPage is docs/flags.md.
func flagsPage(f *pflag.FlagSet) string {
	var flags, idle strings.Builder
	f.VisitAll(func(flag *pflag.Flag) {
		if option.HasNoEffect(flag) {
			fmt.Fprintf(&idle, "| `--%s` | %s |\n", flag.Name, cell(flag.Usage))
			return
		}
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name += ", `-" + flag.Shorthand + "`"
		}
		value := "–"
		if text := strings.Trim(flag.DefValue, "[]"); text != "" {
			value = "`" + text + "`"
		}
		fmt.Fprintf(&flags, "| %s | %s | %s | %s |\n", name, flag.Value.Type(), value, cell(flag.Usage))
	})
	var removed strings.Builder
	all := usage.RemovedFlags()
	slices.SortFunc(all, func(a, b usage.RemovedFlag) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range all {
		fmt.Fprintf(&removed, "| `--%s` | %s |\n", r.Name, cell(r.Reason))
	}
	return pageHead + "\n| flag | type | default | meaning |\n| --- | --- | --- | --- |\n" + flags.String() +
		pageEffects + "| flag | reason |\n| --- | --- |\n" + idle.String() +
		pageRemoved + "| flag | instead |\n| --- | --- |\n" + removed.String() + pageVariables
}

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// TestPage: docs/flags.md and the help are what the program declares.
func TestPage(t *testing.T) {
	controller := newProgram("headgate")
	controller.InitDefaultHelpFlag()
	wantFile(t, "../../docs/flags.md", flagsPage(controller.Flags()))
	help := output(t, "headgate", "--help")
	wantFile(t, "testdata/help/headgate.txt", help)
	wantFile(t, "testdata/help/wait-shutdown.txt", output(t, "wait-shutdown", "--help"))
	if other := output(t, "nginx-ingress-controller", "--help"); strings.ReplaceAll(other, "nginx-ingress-controller", "headgate") != help {
		t.Errorf("with the name of ingress-nginx, the help is\n%s", other)
	}
}

// TestVersion: --version prints what ingress-nginx prints, of any NGINX.
func TestVersion(t *testing.T) {
	for _, c := range []struct{ nginx, version string }{
		{"#!/bin/sh\necho nginx version: nginx/1.2.3 >&2\n", "nginx/1.2.3"},
		{"#!/bin/sh\necho nginx version: other/1.2.3 '(Debian)'\necho more\n", "other/1.2.3 (Debian)"},
		{"#!/bin/sh\necho broken\nexit 1\n", "unknown: run NGINX -v: exit status 1: broken"},
		{"#!/bin/sh\n", "unknown: NGINX -v does not print its version"},
	} {
		nginx := filepath.Join(t.TempDir(), "nginx")
		if err := os.WriteFile(nginx, []byte(c.nginx), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HEADGATE_NGINX", nginx)
		for _, program := range []string{"headgate", "nginx-ingress-controller", "wait-shutdown"} {
			got := strings.ReplaceAll(output(t, program, "--version"), nginx, "NGINX")
			wantFile(t, "testdata/version.txt", strings.Replace(got, c.version, "VERSION", 1))
		}
	}
}

// output runs a program, by its name.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	command := newProgram(program)
	command.SetOut(&out)
	command.SetArgs(args)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wantFile compares a golden file, or writes it.
func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the program has: go test ./cmd/headgate -update\n%s", path, want)
	}
}
