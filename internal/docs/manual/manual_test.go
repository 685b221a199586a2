package manual

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func program() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does <things>", Run: run}
	root.Flags().Int("port", 80, "port | number")
	root.PersistentFlags().StringP("output", "o", "", "`FORMAT` of the output")
	group := &cobra.Command{Use: "show", Short: "Show things", Aliases: []string{"sh"}}
	one := &cobra.Command{Use: "one NAME", Short: "Show one", Long: "Show one of them.\nBy name.", Example: "  tool show one a\n  tool show one b", Run: run}
	one.Flags().StringSlice("of", nil, "which")
	one.Flags().Bool("secret", false, "not shown")
	_ = one.Flags().MarkHidden("secret")
	group.AddCommand(one, &cobra.Command{Use: "none", Hidden: true, Run: run})
	like := &cobra.Command{Use: "like", Short: "Has the root's flags", Run: run}
	like.Flags().AddFlagSet(root.LocalNonPersistentFlags())
	like.Flags().Bool("more", true, "and more")
	root.AddCommand(like, group)
	return root
}

func TestMarkdown(t *testing.T) {
	const want = `# Tool

## tool

Does &lt;things>.

    tool [flags]

| Command | |
| --- | --- |
| [` + "`like`" + `](#tool-like) | Has the root's flags |
| [` + "`show`" + `](#tool-show) | Show things |

See elsewhere.

| Flag | Default | Meaning |
| --- | --- | --- |
| ` + "`-o`, `--output FORMAT`" + ` | – | FORMAT of the output |

## tool like

Has the root's flags.

    tool like [flags]

See elsewhere.

| Flag | Default | Meaning |
| --- | --- | --- |
| ` + "`--more`" + ` | ` + "`true`" + ` | and more |

The flags of [` + "`tool`" + `](#tool) that apply to its commands apply too.

## tool show

Show things.

Other names: ` + "`sh`" + `.

| Command | |
| --- | --- |
| [` + "`one`" + `](#tool-show-one) | Show one |

The flags of [` + "`tool`" + `](#tool) that apply to its commands apply too.

## tool show one

Show one of them.
By name.

    tool show one NAME [flags]

Example:

    tool show one a
    tool show one b

| Flag | Default | Meaning |
| --- | --- | --- |
| ` + "`--of strings`" + ` | – | which |

The flags of [` + "`tool show`" + `](#tool-show) that apply to its commands apply too.
`
	if diff := cmp.Diff(want, Page{Head: "# Tool\n", Root: program(), RootFlags: "See elsewhere."}.Markdown()); diff != "" {
		t.Error(diff)
	}
}

// TestRootFlags: without a sentence about them, the root's flags are in its section.
func TestRootFlags(t *testing.T) {
	const want = "\n| Flag | Default | Meaning |\n| --- | --- | --- |\n" +
		"| `-o`, `--output FORMAT` | – | FORMAT of the output |\n| `--port int` | `80` | port \\| number |\n"
	root := program()
	root.RemoveCommand(root.Commands()...)
	if diff := cmp.Diff("\n## tool\n\nDoes &lt;things>.\n\n    tool [flags]\n"+want, Page{Root: root}.Markdown()); diff != "" {
		t.Error(diff)
	}
}
