package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/internal/command/plaintext"
)

// A format is the value of -o: empty for people.
type format string

const (
	asJSON format = "json"
	asYAML format = "yaml"
)

func (o *format) addFlag(command *cobra.Command) {
	command.Flags().StringVarP((*string)(o), "output", "o", "", "Output format. One of: (json, yaml)")
	complete(command, "output", cobra.FixedCompletions([]string{string(asJSON), string(asYAML)}, cobra.ShellCompDirectiveNoFileComp))
}

func (o format) check() error {
	switch o {
	case "", asJSON, asYAML:
		return nil
	}
	return fmt.Errorf("invalid value %q of --output: must be json or yaml", string(o))
}

// write prints a value as JSON or YAML.
func (o format) write(out io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return o.writeJSON(out, []byte(plaintext.Of(b.String())))
}

// writeJSON prints a JSON text, in YAML if that is wanted.
func (o format) writeJSON(out io.Writer, text []byte) error {
	if o == asYAML {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("reading the output of the pod: %w", err)
		}
	}
	_, err := out.Write(text)
	return err
}

// A table is printed as those of kubectl: the first row has the names of the columns.
type table [][]string

func (t table) write(out io.Writer) error {
	w := printers.GetNewTabWriter(out)
	for _, row := range t {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = oneLine(cell)
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// oneLine is a text of a tenant in a cell: without line breaks, and without characters
// that control terminals.
func oneLine(text string) string {
	return plaintext.Of(strings.Join(strings.Fields(text), " "))
}
