package waitshutdown

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseProcess(t *testing.T) {
	for stat, want := range map[string]process{
		"7 (headgate) S 1 7 7 0 -1":          {pid: 7, parent: 1, name: "headgate"},
		"42 (a) b (c) Z 7 42 42 0":           {pid: 42, parent: 7, name: "a) b (c"},
		"9 (nginx-ingress-c) S 1 9 9 0 -1\n": {pid: 9, parent: 1, name: "nginx-ingress-c"},
	} {
		if got, ok := parseProcess([]byte(stat)); !ok || got != want {
			t.Errorf("%q: %+v, %v; want %+v", stat, got, ok, want)
		}
	}
	for _, stat := range []string{"", "7", "7 (", ")(", "7 (x)", "7 (x) S", "x (x) S 1", "7 (x) S x"} {
		if got, ok := parseProcess([]byte(stat)); ok {
			t.Errorf("%q: %+v, want nothing", stat, got)
		}
	}
}

func TestIsController(t *testing.T) {
	for command, want := range map[string]bool{
		"headgate": true, "headgate --configmap=a/b": true, "nginx-ingress-c": true, "nginx-ingress-c -v=2": true,
		"headgate control": true, "headgate edge": true, "nginx-ingress-c edge": true, "edge": false, "headgate rbac": false,
		"nginx": false, "wait-shutdown": false, "headgate wait-shutdown": false, "headgate explain": false, "dbg conf": false,
	} {
		name, argument, _ := strings.Cut(command, " ")
		if got := (process{name: name, argument: argument}).isController(); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}

// TestProcesses: this process is found, with its first argument.
func TestProcesses(t *testing.T) {
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p process) bool { return p.pid == os.Getpid() })
	if i < 0 || all[i].parent != os.Getppid() || len(os.Args) > 1 && all[i].argument != os.Args[1] {
		t.Errorf("process %d of %d processes", i, len(all))
	}
}
