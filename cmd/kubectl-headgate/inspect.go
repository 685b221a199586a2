package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/finding"
)

func (p *plugin) backendsCommand() *cobra.Command {
	var (
		pods    podFlags
		out     format
		backend string
		list    bool
	)
	command := &cobra.Command{
		Use:   "backends",
		Short: "Show the backends and their endpoints",
		Long:  "Show the backends and their endpoints, as NGINX's workers have them.",
		Example: p.examples(
			"All backends", "backends -n ingress-nginx",
			"Their names", "backends --list",
			"One backend", "backends --backend default-web-80",
		),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := contradiction(command.Flags(), "backend", "list"); err != nil {
				return err
			}
			switch {
			case list && out != "":
				return p.listBackends(command.Context(), pods, out)
			case list:
				return p.dbg(command.Context(), pods, p.Out, "backends", "list")
			case backend != "":
				return p.printJSON(command.Context(), pods, out, "backends", "get", backend)
			}
			return p.printJSON(command.Context(), pods, out, "backends", "all")
		},
	}
	command.Flags().StringVar(&backend, "backend", "", "Name of the one backend to show")
	command.Flags().BoolVar(&list, "list", false, "Show the names alone")
	out.addFlag(command)
	p.addPodFlags(command, &pods)
	complete(command, "backend", p.completeBackends(&pods))
	return command
}

func (p *plugin) listBackends(ctx context.Context, pods podFlags, out format) error {
	if err := out.check(); err != nil {
		return err
	}
	names, err := p.dbgOutput(ctx, pods, "backends", "list")
	if err != nil {
		return err
	}
	return out.write(p.Out, map[string][]string{"backends": strings.Fields(string(names))})
}

// printJSON prints JSON of the pod.
func (p *plugin) printJSON(ctx context.Context, pods podFlags, out format, args ...string) error {
	if err := out.check(); err != nil {
		return err
	}
	text, err := p.dbgOutput(ctx, pods, args...)
	if err != nil {
		return err
	}
	return out.writeJSON(p.Out, text)
}

func (p *plugin) certsCommand() *cobra.Command {
	var (
		pods podFlags
		host string
	)
	command := &cobra.Command{
		Use:     "certs --host HOST",
		Short:   "Show the certificate of a host",
		Long:    "Show the certificate that is served for a host name, with its chain, in PEM format. Its private key is not shown.",
		Example: p.examples("The dates of a certificate", "certs --host shop.example.com | openssl x509 -noout -dates"),
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := required("host", host, "the name of the host"); err != nil {
				return err
			}
			return p.dbg(command.Context(), pods, p.Out, "certs", "get", host)
		},
	}
	command.Flags().StringVar(&host, "host", "", "Host name. Required")
	p.addPodFlags(command, &pods)
	complete(command, "host", p.completeHosts)
	return command
}

func (p *plugin) confCommand() *cobra.Command {
	var (
		pods podFlags
		host string
		out  format
	)
	command := &cobra.Command{
		Use:   "conf",
		Short: "Show nginx.conf, or what serves a host",
		Long: "Show nginx.conf.\n\n" +
			"nginx.conf has no server block for a host: hosts and their routes are data in shared memory. With --host, the routes of\n" +
			"one host are listed, each with its location in nginx.conf, if it has one of its own. With -o, that data is shown.",
		Example: p.examples("nginx.conf", "conf", "What serves a host", "conf --host shop.example.com"),
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if host == "" {
				if out != "" {
					return errors.New("--output has no effect without --host: nginx.conf has one format")
				}
				return p.dbg(command.Context(), pods, p.Out, "conf")
			}
			fmt.Fprintf(p.ErrOut, "nginx.conf has no server block for %s. It is served by:\n", oneLine(host))
			if out == "" {
				return p.dbg(command.Context(), pods, p.Out, "routes", host)
			}
			return p.printJSON(command.Context(), pods, out, "hosts", "get", host)
		},
	}
	command.Flags().StringVar(&host, "host", "", "Host name: show what serves it")
	out.addFlag(command)
	p.addPodFlags(command, &pods)
	complete(command, "host", p.completeHosts)
	return command
}

func (p *plugin) generalCommand() *cobra.Command {
	var (
		pods podFlags
		out  format
	)
	command := &cobra.Command{
		Use:   "general",
		Short: "Show the settings that apply to all hosts",
		Long:  "Show the settings that apply to all hosts, as NGINX's workers have them.",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return p.printJSON(command.Context(), pods, out, "general")
		},
	}
	out.addFlag(command)
	p.addPodFlags(command, &pods)
	return command
}

// findings are what `dbg findings -o json` prints.
type findings struct {
	Findings []finding.Finding `json:"findings"`
}

func (p *plugin) findingsCommand() *cobra.Command {
	var (
		pods    = podFlags{control: true}
		out     format
		objects []string
		codes   []string
	)
	command := &cobra.Command{
		Use:   "findings",
		Short: "Show the findings: problems of objects, and their effects",
		Long:  "Show the current findings of the controller: the problems of Ingresses, Services, Secrets and ConfigMaps, and their effects.",
		Example: p.examples(
			"All findings", "findings",
			"Those of one Ingress, with their effects", "findings --object ingress/default/web -o yaml",
			"Values that are not valid", "findings --code InvalidValue",
		),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			found, err := p.findings(command.Context(), pods)
			if err != nil {
				return err
			}
			return p.printFindings(out, selectFindings(found, objects, codes))
		},
	}
	command.Flags().StringSliceVar(&objects, "object", nil, "Object whose findings are shown, such as ingress/NAMESPACE/NAME. Can be repeated")
	command.Flags().StringSliceVar(&codes, "code", nil, "Code of the findings that are shown, such as InvalidValue. Can be repeated")
	out.addFlag(command)
	p.addPodFlags(command, &pods)
	return command
}

func (p *plugin) findings(ctx context.Context, pods podFlags) ([]finding.Finding, error) {
	text, err := p.dbgOutput(ctx, pods, "findings", "-o", "json")
	if err != nil {
		return nil, err
	}
	var found findings
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("reading the findings: %w", err)
	}
	return found.Findings, nil
}

// selectFindings returns those of one of the objects and with one of the codes; all if
// there are none.
func selectFindings(found []finding.Finding, objects, codes []string) []finding.Finding {
	selected := []finding.Finding{}
	for _, f := range found {
		if oneOf(objects, f.Object) && oneOf(codes, string(f.Code)) {
			selected = append(selected, f)
		}
	}
	return selected
}

func oneOf(wanted []string, value string) bool {
	for _, w := range wanted {
		if strings.EqualFold(w, value) {
			return true
		}
	}
	return len(wanted) == 0
}

func (p *plugin) printFindings(out format, found []finding.Finding) error {
	if out != "" {
		return out.write(p.Out, findings{found})
	}
	if len(found) == 0 {
		fmt.Fprintln(p.ErrOut, "No findings.")
		return nil
	}
	rows := table{{"OBJECT", "CODE", "FIELD", "MESSAGE"}}
	for _, f := range found {
		rows = append(rows, []string{f.Object, string(f.Code), f.Field, f.Message + "; " + f.Effect})
	}
	return rows.write(p.Out)
}

func (p *plugin) explainCommand() *cobra.Command {
	var (
		pods             = podFlags{control: true}
		out              format
		headers, cookies []string
		method, from     string
		defaults         bool
	)
	command := &cobra.Command{
		Use:   "explain URL",
		Short: "Explain how a request is handled",
		Long: "Explain which host and route a request gets, which settings apply and where they come from, which endpoints its backend\n" +
			"has, and which certificate is served. The request is not sent.",
		Example: p.examples("A request", "explain https://shop.example.com/cart", "With a header", "explain --header 'X-Canary: always' https://shop.example.com/"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("one argument is needed: the URL of the request")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			call := []string{"explain", "--method", method}
			if from != "" {
				call = append(call, "--from", from)
			}
			for _, header := range headers {
				call = append(call, "--header", header)
			}
			for _, cookie := range cookies {
				call = append(call, "--cookie", cookie)
			}
			if defaults {
				call = append(call, "--defaults")
			}
			if out == "" {
				return p.dbg(command.Context(), pods, p.Out, append(call, "--", args[0])...)
			}
			return p.printJSON(command.Context(), pods, out, append(call, "-o", "json", "--", args[0])...)
		},
	}
	f := command.Flags()
	f.StringArrayVar(&headers, "header", nil, "Header of the request, 'Name: value'. Can be repeated")
	f.StringArrayVar(&cookies, "cookie", nil, "Cookie of the request, 'NAME=VALUE'. Can be repeated")
	f.StringVar(&method, "method", "GET", "Method of the request")
	f.StringVar(&from, "from", "", "Address of the client")
	f.BoolVar(&defaults, "defaults", false, "Show settings with default values too")
	out.addFlag(command)
	p.addPodFlags(command, &pods)
	return command
}
