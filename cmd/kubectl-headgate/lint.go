package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/command/leftover"
	"github.com/headgate/headgate/internal/finding"
)

// lastRelease is the last release of ingress-nginx.
const lastRelease = "1.15.1"

// lintFlags are those of lint and its commands.
type lintFlags struct {
	pods             podFlags
	out              format
	all              bool
	showAll, verbose bool
	from, to, prefix string
	versions         leftover.Versions
}

// A linted object is what lint found in it.
type linted struct {
	Object string `json:"object"`
	// Leftovers are found in the object alone.
	Leftovers []leftover.Leftover `json:"leftovers,omitempty"`
	// Findings are those of the running controller.
	Findings []finding.Finding `json:"findings,omitempty"`
}

func (p *plugin) lintCommand() *cobra.Command {
	command := p.lintCommandFor("lint", "Check Ingresses and Deployments", true, true)
	ingresses := p.lintCommandFor("ingresses", "Check Ingresses", true, false)
	ingresses.Aliases = []string{"ingress", "ing"}
	deployments := p.lintCommandFor("deployments", "Check Deployments", false, true)
	deployments.Aliases = []string{"deployment", "deploy"}
	command.AddCommand(ingresses, deployments)
	return command
}

func (p *plugin) lintCommandFor(name, short string, ingresses, deployments bool) *cobra.Command {
	o := lintFlags{pods: podFlags{control: true}}
	command := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return p.lint(command.Context(), o, ingresses, deployments)
		},
	}
	command.Long = short + " of the cluster: for what ingress-nginx removed or gave another meaning, up to the version of --to-version."
	if ingresses {
		command.Long += "\n\nWhat a running Headgate finds in the Ingresses is added. Without one, or without the permission to ask it, only the\n" +
			"checks of single objects are made. `headgate lint` checks manifests, and a saved dump of a cluster, as Headgate serves them."
	}
	f := command.Flags()
	addAllNamespacesFlag(command, &o.all)
	f.BoolVar(&o.showAll, "show-all", false, "Show objects without problems too")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "Show the version of ingress-nginx that changed it, and what to do")
	f.StringVarP(&o.from, "from-version", "f", "0.0.0", "Oldest version of ingress-nginx whose changes are checked")
	f.StringVarP(&o.to, "to-version", "t", lastRelease, "Newest version of ingress-nginx whose changes are checked")
	o.out.addFlag(command)
	if ingresses {
		f.StringVar(&o.prefix, "annotations-prefix", "nginx.ingress.kubernetes.io", "Prefix of the annotations that the controller reads")
		p.addPodFlags(command, &o.pods)
		command.Flags().StringVar(&o.pods.namespace, "controller-namespace", "", "Namespace of the controller's pod. By default that of --namespace, or of the current context")
	}
	return command
}

func (o *lintFlags) check() error {
	if err := o.out.check(); err != nil {
		return err
	}
	for _, version := range []struct{ flag, value string }{{"from-version", o.from}, {"to-version", o.to}} {
		if _, err := leftover.ParseVersions(version.value, version.value); err != nil {
			return fmt.Errorf("invalid value %q of --%s: must be a version such as %s", version.value, version.flag, lastRelease)
		}
	}
	var err error
	o.versions, err = leftover.ParseVersions(o.from, o.to)
	return err
}

func (p *plugin) lint(ctx context.Context, o lintFlags, ingresses, deployments bool) error {
	s, err := p.connect()
	if err != nil {
		return err
	}
	if o.all {
		s.namespace = metav1.NamespaceAll
	}
	var objects []linted
	if ingresses {
		found, err := p.lintIngresses(ctx, s, o)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	if deployments {
		found, err := lintDeployments(ctx, s, o)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	checked := len(objects)
	if !o.showAll {
		objects = slices.DeleteFunc(objects, linted.clean)
	}
	if o.out != "" {
		return o.out.write(p.Out, map[string][]linted{"objects": append([]linted{}, objects...)})
	}
	return p.printLinted(objects, checked, o.verbose)
}

func (l linted) clean() bool { return len(l.Leftovers) == 0 && len(l.Findings) == 0 }

func (p *plugin) lintIngresses(ctx context.Context, s session, o lintFlags) ([]linted, error) {
	list, err := s.client.NetworkingV1().Ingresses(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	known, err := p.findings(ctx, o.pods)
	if err != nil {
		fmt.Fprintln(p.ErrOut, "Without the findings of a running Headgate:", err)
	}
	var objects []linted
	for i := range list.Items {
		ing := &list.Items[i]
		one := linted{Object: "ingress/" + ing.Namespace + "/" + ing.Name, Leftovers: o.counting(leftover.Ingress(ing, o.prefix))}
		for _, f := range known {
			if f.Object == one.Object && !has(one.Leftovers, f.Field) {
				one.Findings = append(one.Findings, f)
			}
		}
		objects = append(objects, one)
	}
	return objects, nil
}

// has reports whether a leftover is about a field.
func has(found []leftover.Leftover, field string) bool {
	return slices.ContainsFunc(found, func(l leftover.Leftover) bool { return l.Field == field })
}

func lintDeployments(ctx context.Context, s session, o lintFlags) ([]linted, error) {
	list, err := s.client.AppsV1().Deployments(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var objects []linted
	for i := range list.Items {
		d := &list.Items[i]
		objects = append(objects, linted{Object: "deployment/" + d.Namespace + "/" + d.Name, Leftovers: o.counting(leftover.Deployment(d))})
	}
	return objects, nil
}

// counting returns the leftovers of the versions that are asked for.
func (o lintFlags) counting(found []leftover.Leftover) []leftover.Leftover {
	return slices.DeleteFunc(found, func(l leftover.Leftover) bool { return !o.versions.Has(l) })
}

func (p *plugin) printLinted(objects []linted, checked int, verbose bool) error {
	problems := 0
	for _, object := range objects {
		lines := []string{object.Object}
		for _, l := range object.Leftovers {
			lines = append(lines, "  "+oneLine(l.Field)+": "+oneLine(l.Message))
			if verbose {
				if l.Since != "" {
					lines = append(lines, "    since ingress-nginx "+l.Since)
				}
				lines = append(lines, "    "+l.Advice)
			}
		}
		for _, f := range object.Findings {
			lines = append(lines, "  "+oneLine(f.Field)+": "+oneLine(f.Message))
			if verbose {
				lines = append(lines, "    "+string(f.Code)+": "+oneLine(f.Effect))
			}
		}
		problems += len(object.Leftovers) + len(object.Findings)
		if object.clean() {
			lines = append(lines, "  no problems")
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(p.Out, line); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(p.ErrOut, "%s in %s\n", count(problems, "problem"), count(checked, "object"))
	return nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
