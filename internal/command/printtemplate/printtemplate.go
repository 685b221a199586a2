// Package printtemplate prints the built-in template of nginx.conf.
package printtemplate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// Command is the command "template".
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "template",
		Short: "Print the built-in template of nginx.conf",
		Long:  "Template prints the built-in template of nginx.conf, to begin one of your own with. See docs/template.md.",
		Args:  usage.OnlyCommands,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), nginxconf.Template())
			return err
		},
	}
}
