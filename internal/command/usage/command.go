package usage

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/finding/nearest"
)

// OnlyCommands refuses arguments of a command that has none. The error names the command
// that the first one is most like.
func OnlyCommands(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := cobra.NoArgs(command, args)
	var names []string
	for _, c := range command.Commands() {
		names = append(names, c.Name())
	}
	if near := nearest.Name(args[0], names); near != "" {
		return fmt.Errorf("%w: did you mean %s?", err, near)
	}
	return err
}
