package run

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/release"
)

// An ingressNGINXFlag is a line of the table of ingress-nginx's flags.
type ingressNGINXFlag struct{ kind, name, valueType, value, status string }

// flagsOfIngressNGINX reads the table of ingress-nginx's flags.
func flagsOfIngressNGINX(t *testing.T) []ingressNGINXFlag {
	t.Helper()
	text, err := os.ReadFile("../../../test/compat/flags.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var list []ingressNGINXFlag
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if fields[0] != "controller" {
			continue
		}
		name, _, _ := strings.Cut(fields[2], ",") // "--help, -h"
		name, _, _ = strings.Cut(name, " ")       // "--v (short -v)"
		list = append(list, ingressNGINXFlag{fields[1], strings.TrimPrefix(name, "--"), fields[3], fields[4], fields[6]})
	}
	return list
}

// typesOf are the types of values here, by those of the table.
func typesOf() map[string]string {
	return map[string]string{
		"int": "int uint16", "int seconds": "int", "string list": "stringSlice", "float list": "float64Slice", "level": "int",
	}
}

// defaultsOf are defaults that the table writes in words, or not like Go.
func defaultsOf() map[string]string {
	return map[string]string{"length-buckets": "10,20,30,40,50,60,70,80,90,100", "size-buckets": "10,100,1000,10000,100000,1e6,1e7", "sync-period": "0s"}
}

// sameDefault reports whether two defaults are the same, of lists of numbers those with the same
// numbers.
func sameDefault(a, b string) bool {
	numbers := func(text string) (list []float64) {
		for item := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
			n, err := strconv.ParseFloat(item, 64)
			if err != nil {
				return nil
			}
			list = append(list, n)
		}
		return list
	}
	if x, y := numbers(a), numbers(b); x != nil && y != nil {
		return slices.Equal(x, y)
	}
	return strings.Trim(a, "[]") == b
}

// TestFlagsOfIngressNGINX: all flags of ingress-nginx exist with their types and defaults,
// and those that it removed do not.
func TestFlagsOfIngressNGINX(t *testing.T) {
	command := Command(release.Build{Version: "development"})
	command.InitDefaultHelpFlag()
	seen := map[string]int{}
	for _, want := range flagsOfIngressNGINX(t) {
		if want.kind == "env" {
			continue
		}
		flag := command.Flags().Lookup(want.name)
		if strings.HasPrefix(want.status, "removed") {
			seen["removed"]++
			if _, err := parseFlags("--" + want.name + "=x"); err == nil || !strings.Contains(err.Error(), "ingress-nginx has removed it") {
				t.Errorf("--%s: %v", want.name, err)
			}
			continue
		}
		seen[want.kind]++
		if flag == nil {
			t.Errorf("--%s is unknown", want.name)
			continue
		}
		types, ok := typesOf()[want.valueType]
		if !ok {
			types = want.valueType
		}
		if !strings.Contains(types, flag.Value.Type()) {
			t.Errorf("--%s is of type %s, want %s", want.name, flag.Value.Type(), want.valueType)
		}
		if value := defaultOf(want); !sameDefault(flag.DefValue, value) {
			t.Errorf("the default of --%s is %q, want %q", want.name, flag.DefValue, value)
		}
	}
	if seen[""] != 73 || seen["klog"] != 15 || seen["removed"] != 6 {
		t.Errorf("the table has %v", seen)
	}
}

// defaultOf is a default as package pflag prints it.
func defaultOf(f ingressNGINXFlag) string {
	if value, ok := defaultsOf()[f.name]; ok {
		return value
	}
	if strings.HasPrefix(f.value, "empty") {
		return ""
	}
	return f.value
}

// parseFlags parses flags of the controller.
func parseFlags(args ...string) (*pflag.FlagSet, error) {
	command := Command(release.Build{Version: "development"})
	command.InitDefaultHelpFlag()
	if err := command.Flags().Parse(args); err != nil {
		return nil, command.FlagErrorFunc()(command, err)
	}
	return command.Flags(), nil
}
