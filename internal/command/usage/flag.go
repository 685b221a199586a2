package usage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/finding/nearest"
)

// ExplainFlagErrors makes a command report invalid flags with the flag, the value and what
// is allowed, and unknown ones with the flag that may be meant.
func ExplainFlagErrors(command *cobra.Command) {
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if command.HasSubCommands() {
			// The flag may be one of a command whose name is misspelt.
			if err := OnlyCommands(command, command.Flags().Args()); err != nil {
				return err
			}
		}
		return explainFlagError(command.Flags(), err)
	})
}

// ExplainWrongFlags is ExplainFlagErrors for a command with an exit status of its own for wrong use.
func ExplainWrongFlags(command *cobra.Command) {
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return Wrong(explainFlagError(command.Flags(), err)) })
}

func explainFlagError(f *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(f, unknown)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value: %s", missing.GetFlag().Name, allowed(missing.GetFlag()))
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return InvalidValue(invalid.GetValue(), invalid.GetFlag().Name, allowed(invalid.GetFlag()))
	}
	return err
}

// InvalidValue is the error of a flag's value.
func InvalidValue(value any, flag, allowed string) error {
	return fmt.Errorf("invalid value %q of --%s: must be %s", fmt.Sprint(value), flag, allowed)
}

// allowed says which values a flag can have, by its type.
func allowed(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "uint16":
		return "a port from 1 to 65535"
	case "uint32", "uint64":
		return "a whole number, 0 or more"
	case "float32", "float64":
		return "a number"
	case "float64Slice":
		return "numbers, separated by commas"
	case "duration":
		return "a duration such as 30s or 5m"
	case "ip":
		return "an IP address"
	case "severity":
		return "0, 1, 2, 3, INFO, WARNING, ERROR or FATAL"
	case "moduleSpec":
		return "PATTERN=N, separated by commas"
	case "traceLocation":
		return "FILE:LINE, such as run.go:42"
	}
	return "a text"
}

// unknownFlag is the error of a flag that does not exist.
func unknownFlag(f *pflag.FlagSet, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		// Long names with one dash are read as letters.
		name, _, _ = strings.Cut(letters, "=")
		if f.Lookup(name) != nil {
			return fmt.Errorf("unknown flag -%s: did you mean --%s?", letters, letters)
		}
		return fmt.Errorf("unknown flag -%s", letters)
	}
	for _, r := range RemovedFlags() {
		if r.Name == name {
			return fmt.Errorf("unknown flag --%s: ingress-nginx has removed it; %s", name, r.Reason)
		}
	}
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := nearest.Name(name, names); near != "" {
		return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, near)
	}
	return fmt.Errorf("unknown flag --%s", name)
}

// A RemovedFlag is a flag that ingress-nginx once had.
type RemovedFlag struct{ Name, Reason string }

// RemovedFlags are all of them.
func RemovedFlags() []RemovedFlag {
	const always = "what it did is always done: remove it"
	return []RemovedFlag{
		{"disable-node-list", "nodes are read only for the status of Ingresses, and not at all with --publish-service or --publish-status-address: remove it"},
		{"ssl-passtrough-proxy-port", "use --ssl-passthrough-proxy-port"},
		{"enable-dynamic-configuration", always},
		{"sort-backends", "the order of endpoints does not affect requests: remove it"},
		{"enable-dynamic-certificates", always},
		{"force-namespace-isolation", "an Ingress never refers to objects of other namespaces, unless the key allow-cross-namespace-resources allows it: remove it"},
	}
}

// NotNegative rejects a flag below 0.
func NotNegative(flag string, value int) error {
	if value < 0 {
		return InvalidValue(value, flag, "0 or more")
	}
	return nil
}
