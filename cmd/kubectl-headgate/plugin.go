package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headgate/headgate/internal/command/pod"
)

// newExec returns a pod.Exec for a cluster.
type newExec func(*rest.Config, kubernetes.Interface) pod.Exec

// A plugin is one call of the program.
type plugin struct {
	genericiooptions.IOStreams
	// path is how users call it: kubectl headgate.
	path string
	// controllers are the names that Deployments and Services of the controller have
	// by default, the first one first.
	controllers []string
	config      *genericclioptions.ConfigFlags
	newExec     newExec
}

// The names of Deployments and Services in the manifests of Headgate and of
// ingress-nginx.
const (
	headgateController = "headgate-controller"
	ingressController  = "ingress-nginx-controller"
)

// control is the name of the Deployment of controls beside a controller, where control and edges are apart.
func control(controller string) string {
	return strings.TrimSuffix(controller, "-controller") + "-control"
}

// newPlugin returns the plugin with a name, ingress_nginx or any other one.
func newPlugin(name string, streams genericiooptions.IOStreams, newExec newExec) *plugin {
	p := &plugin{
		IOStreams: streams, path: "kubectl headgate", controllers: []string{headgateController, ingressController},
		config: genericclioptions.NewConfigFlags(false), newExec: newExec,
	}
	if name == "ingress_nginx" {
		p.path, p.controllers = "kubectl ingress-nginx", []string{ingressController, headgateController}
	}
	p.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.UserAgent = "kubectl-headgate/" + version
		c.WarningHandler = rest.NewWarningWriter(p.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return c
	}
	return p
}

// controlCommands are those with podFlags.control.
const controlCommands = "edges, explain, findings and lint"

func (p *plugin) command() *cobra.Command {
	root := &cobra.Command{
		Use:   strings.ReplaceAll(p.path, " ", "-"),
		Short: "Look into running instances of Headgate",
		Long: "Look into running instances of Headgate, and check Ingresses.\n\n" +
			"Most commands run /dbg in a pod of the controller, which needs the permission to create pods/exec. The pod is one of the\n" +
			"Deployment or DaemonSet " + strings.Join(p.controllers, " or ") + " in the namespace of -n or of the current context. Where\n" +
			"control and edges are apart, that is an edge. " + controlCommands + " ask the control.",
		Version:           version,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: p.path},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.ErrOut)
	p.addConfigFlags(root.PersistentFlags())
	root.AddCommand(
		p.backendsCommand(), p.certsCommand(), p.confCommand(), p.generalCommand(), p.findingsCommand(), p.edgesCommand(), p.explainCommand(),
		p.execCommand(), p.sshCommand(), p.logsCommand(), p.infoCommand(), p.ingressesCommand(), p.lintCommand(), optionsCommand(),
	)
	root.Flags().Bool("version", false, "Show the version")
	p.setHelp(root)
	p.completeConfigFlags(root)
	return root
}

func (p *plugin) addConfigFlags(f *pflag.FlagSet) {
	// Nothing is cached. The default would depend on the user.
	*p.config.CacheDir = ""
	p.config.AddFlags(f)
	f.Lookup("cache-dir").Usage = "Accepted as in kubectl: this plugin caches nothing"
	f.BoolP("help", "h", false, "Show the help of a command")
}

// A session is a connection to a cluster.
type session struct {
	client    kubernetes.Interface
	namespace string
	exec      pod.Exec
}

func (p *plugin) connect() (session, error) {
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return session{}, err
	}
	config, err := p.config.ToRESTConfig()
	if err != nil {
		return session{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return session{}, err
	}
	return session{client, namespace, p.newExec(config, client)}, nil
}

// podFlags choose the pod.
type podFlags struct {
	choice     pod.Choice
	deployment string
	// control is set for what a control knows, where there is one.
	control bool
	// namespace is that of the pod; empty for that of the other objects.
	namespace string
}

func (p *plugin) addPodFlags(command *cobra.Command, o *podFlags) {
	f, names := command.Flags(), p.deployments(o.control)
	f.StringVar(&o.choice.Name, "pod", "", "Name of the pod. It takes precedence over --selector and --deployment")
	f.StringVar(&o.deployment, "deployment", "",
		"Name of the Deployment or DaemonSet whose pod is asked. By default the first one that exists: "+strings.Join(names, ", "))
	f.StringVarP(&o.choice.Selector, "selector", "l", "", "Labels of the pod, such as app=headgate. They take precedence over --deployment")
	f.StringVar(&o.choice.Container, "container", "",
		"Name of the container. By default "+pod.DefaultContainer+" or, if the pod has no such container, the one that kubectl uses")
	p.completePodFlags(command)
}

// deployments are the names of those whose pods are asked by default. A control comes before what has the name of its
// edges.
func (p *plugin) deployments(wantsControl bool) []string {
	if !wantsControl {
		return p.controllers
	}
	var names []string
	for _, controller := range p.controllers {
		names = append(names, control(controller), controller)
	}
	return names
}

// choose connects to the cluster, and says which container is wanted.
func (p *plugin) choose(o podFlags) (session, pod.Choice, error) {
	s, err := p.connect()
	if err != nil {
		return session{}, pod.Choice{}, err
	}
	o.choice.Control, o.choice.Deployments = o.control, p.deployments(o.control)
	if o.deployment != "" {
		o.choice.Deployments = []string{o.deployment}
	}
	s.namespace = cmp.Or(o.namespace, s.namespace)
	return s, o.choice, nil
}

// find connects to the cluster and finds the container.
func (p *plugin) find(ctx context.Context, o podFlags) (session, pod.Target, error) {
	s, choice, err := p.choose(o)
	if err != nil {
		return session{}, pod.Target{}, err
	}
	target, err := choice.Find(ctx, s.client, s.namespace)
	return s, target, err
}

// dbg runs the program for inspection in the pod.
func (p *plugin) dbg(ctx context.Context, o podFlags, out io.Writer, args ...string) error {
	s, target, err := p.find(ctx, o)
	if err != nil {
		return err
	}
	return s.exec(ctx, target, pod.Command{Args: append([]string{"/dbg"}, args...), Out: out, Err: p.ErrOut})
}

// dbgOutput is like dbg, and returns what the program prints.
func (p *plugin) dbgOutput(ctx context.Context, o podFlags, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := p.dbg(ctx, o, &out, args...)
	return out.Bytes(), err
}

// contradiction is an error if both flags are set.
func contradiction(f *pflag.FlagSet, a, b string) error {
	if f.Changed(a) && f.Changed(b) {
		return errors.New("--" + a + " and --" + b + " contradict each other: set one of them")
	}
	return nil
}

// required is an error if a flag is empty.
func required(name, value, what string) error {
	if value == "" {
		return fmt.Errorf("--%s is missing: %s", name, what)
	}
	return nil
}
