package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"

	"github.com/headgate/headgate/internal/command/pod"
)

var update = flag.Bool("update", false, "update the golden files and docs/kubectl-plugin.md")

// TestGolden runs the commands of each case. The file cluster.yaml has the objects of
// the API server and log.txt the log of the pods. A section "exec POD CONTAINER COMMAND" has the
// output of a command in a pod. A section "$ PROGRAM ARGUMENTS" has the output of
// the plugin, with standard error behind "! ", and its exit status.
func TestGolden(t *testing.T) {
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
			cluster, pods := &fakeCluster{}, fakePods{}
			for _, f := range archive.Files {
				if command, ok := strings.CutPrefix(f.Name, "exec "); ok {
					pods[command] = string(f.Data)
				}
				switch f.Name {
				case "cluster.yaml":
					cluster.objects = readObjects(t, f.Data)
				case "log.txt":
					cluster.log = string(f.Data)
				}
			}
			kubeconfig := cluster.start(t)
			commands := 0
			for i, f := range archive.Files {
				line, ok := strings.CutPrefix(f.Name, "$ ")
				if !ok {
					continue
				}
				commands++
				got := call(words(line), kubeconfig, pods)
				if !*update && got != string(f.Data) {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s\n(go test -update writes it)", f.Name, got, f.Data)
				}
				archive.Files[i].Data = []byte(got)
			}
			if commands == 0 {
				t.Error("no command")
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var word = regexp.MustCompile(`'[^']*'|\S+`)

// words splits a line as a shell does.
func words(line string) []string {
	found := word.FindAllString(line, -1)
	for i := range found {
		found[i] = strings.Trim(found[i], "'")
	}
	return found
}

// call runs the plugin with the name of its program first.
func call(args []string, kubeconfig string, pods fakePods) string {
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader("typed\n"), Out: &out, ErrOut: &errs}
	args = append([]string{args[0], "--kubeconfig", kubeconfig}, args[1:]...)
	command := newProgram(args, streams, func(*rest.Config, kubernetes.Interface) pod.Exec { return pods.run })
	status := report(&errs, command.ExecuteContext(context.Background()))
	for line := range strings.Lines(errs.String()) {
		out.WriteString("! " + strings.TrimSuffix(line, "\n") + "\n")
	}
	fmt.Fprintf(&out, "status %d\n", status)
	return out.String()
}

// fakePods are the outputs of commands, by "POD CONTAINER COMMAND".
type fakePods map[string]string

func (f fakePods) run(_ context.Context, t pod.Target, c pod.Command) error {
	output, ok := f[t.Pod+" "+t.Container+" "+strings.Join(c.Args, " ")]
	if !ok {
		fmt.Fprintf(c.Err, "%s/%s/%s has no command %q, terminal: %v\n", t.Namespace, t.Pod, t.Container, c.Args, c.TTY)
		return exec.CodeExitError{Err: errors.New("the command ended with status 7"), Code: 7}
	}
	if c.In != nil {
		if _, err := io.Copy(c.Out, c.In); err != nil {
			return err
		}
	}
	_, err := io.WriteString(c.Out, output)
	return err
}
