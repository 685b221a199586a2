// Package certgen is ingress-nginx's program kube-webhook-certgen: its commands, flags and log.
//
// How certificates are made and stored is for admission/certgen.
package certgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/headgate/headgate/internal/admission/certgen"
	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/source/kube"
)

// Name is the name of ingress-nginx's program, and of the command that does the same.
const Name = "kube-webhook-certgen"

// timeout bounds a command of it.
const timeout = time.Minute

// flags are those of all its commands.
type flags struct {
	build release.Build

	level, format, kubeconfig string

	secret, namespace string
}

// Command is the program, by itself or as a command of headgate.
func Command(build release.Build) *cobra.Command {
	o := flags{build: build}
	command := &cobra.Command{
		Use:   Name,
		Short: "Make a certificate for an admission webhook, and have the API server trust it",
		Long: "Two Jobs run this program: one creates a Secret with a certificate, the other writes its CA into the objects\n" +
			"that make API servers call the webhook. With --webhook-self-signed, Headgate itself does both, and needs no Jobs.\n" +
			"The exit status is 1 if a command fails.",
		Args:          usage.OnlyCommands,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	f := command.PersistentFlags()
	f.StringVar(&o.level, "log-level", "info", "least level of messages that are logged: panic, fatal, error, warn, info, debug or trace")
	f.StringVar(&o.format, "log-format", "json", "log format: text or json")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the pod's ServiceAccount)")
	command.CompletionOptions.DisableDefaultCmd = true
	usage.ExplainFlagErrors(command)
	command.AddCommand(o.newCreateCommand(), o.newPatchCommand(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), build.Version)
			return err
		},
	})
	return command
}

// addSecretFlags adds the flags of both commands.
func (o *flags) addSecretFlags(command *cobra.Command, secretUsage string) {
	f := command.Flags()
	f.SortFlags = false
	f.StringVar(&o.secret, "secret-name", "", secretUsage+" (required)")
	f.StringVar(&o.namespace, "namespace", "", "namespace of the Secret (required)")
	require(command, "secret-name", "namespace")
}

// require declares flags as required.
func require(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err) // there is no such flag
		}
	}
}

func (o *flags) newCreateCommand() *cobra.Command {
	var hosts string
	request := certgen.Request{Now: time.Now}
	command := &cobra.Command{
		Use:   "create",
		Short: "Create a Secret with a certificate, unless it exists",
		Long: "Create makes a certificate authority and a certificate for --host that are valid for a hundred years, and stores\n" +
			"them in a Secret with the keys \"ca\", --cert-name and --key-name. A Secret that exists is left alone, except that\n" +
			"--rotate-before renews its certificate. Then the key \"ca\" has the old authority too; run patch after it.",
		Args: cobra.NoArgs,
	}
	f := command.Flags()
	f.StringVar(&hosts, "host", "", "DNS names and IP addresses of the certificate, separated by commas (required)")
	o.addSecretFlags(command, "name of the Secret to create")
	f.StringVar(&request.Keys.Certificate, "cert-name", certgen.DefaultKeys.Certificate, "key of the certificate in the Secret")
	f.StringVar(&request.Keys.Key, "key-name", certgen.DefaultKeys.Key, "key of the private key in the Secret")
	f.DurationVar(&request.RotateBefore, "rotate-before", 0, "renew the certificate of a Secret that exists if it expires within this time, for example 720h (default: never)")
	require(command, "host")
	command.RunE = o.run(func(ctx context.Context, clients kube.Clients, log *slog.Logger) error {
		request.Client, request.Secret, request.Log = clients.Objects, o.name(), log
		return request.Create(ctx)
	}, func() error {
		for name := range strings.SplitSeq(hosts, ",") {
			if name = strings.TrimSpace(name); name != "" {
				request.Names = append(request.Names, name)
			}
		}
		return checkCreate(request)
	})
	return command
}

func checkCreate(r certgen.Request) error {
	keys := []string{certgen.CAKey, r.Keys.Certificate, r.Keys.Key}
	slices.Sort(keys)
	switch {
	case len(r.Names) == 0:
		return errors.New("--host must have a DNS name or an IP address")
	case keys[0] == "" || len(slices.Compact(keys)) < 3:
		return fmt.Errorf("--cert-name and --key-name must differ from each other and from %q", certgen.CAKey)
	case r.RotateBefore < 0:
		return errors.New("--rotate-before must not be negative")
	}
	return nil
}

func (o *flags) newPatchCommand() *cobra.Command {
	var webhook, policy string
	var validating, mutating bool
	var patch certgen.Patch
	command := &cobra.Command{
		Use:   "patch",
		Short: "Write the CA of a Secret into webhook configurations and an APIService",
		Long: "Patch reads the key \"ca\" of a Secret and writes it as the CA bundle into all webhooks of a\n" +
			"ValidatingWebhookConfiguration and a MutatingWebhookConfiguration of the same name, and into an APIService.",
		Args: cobra.NoArgs,
	}
	o.addSecretFlags(command, "name of the Secret with the key \"ca\"")
	f := command.Flags()
	f.StringVar(&webhook, "webhook-name", "", "name of the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration (default: none)")
	f.BoolVar(&validating, "patch-validating", true, "patch the ValidatingWebhookConfiguration")
	f.BoolVar(&mutating, "patch-mutating", true, "patch the MutatingWebhookConfiguration")
	f.StringVar(&policy, "patch-failure-policy", "", "set the failure policy of the webhooks: Ignore or Fail (default: leave it as it is)")
	f.StringVar(&patch.APIService, "apiservice-name", "", "name of the APIService (default: none)")
	command.RunE = o.run(func(ctx context.Context, clients kube.Clients, log *slog.Logger) error {
		patch.Client, patch.Dynamic, patch.Secret, patch.Log = clients.Objects, clients.Dynamic, o.name(), log
		return patch.Apply(ctx)
	}, func() error {
		if validating {
			patch.Validating = webhook
		}
		if mutating {
			patch.Mutating = webhook
		}
		patch.FailurePolicy = admissionregistrationv1.FailurePolicyType(policy)
		return checkPatch(patch)
	})
	return command
}

func checkPatch(p certgen.Patch) error {
	switch p.FailurePolicy {
	case "", admissionregistrationv1.Ignore, admissionregistrationv1.Fail:
	default:
		return fmt.Errorf("invalid value %q of --patch-failure-policy: must be Ignore or Fail", p.FailurePolicy)
	}
	if p.Validating == "" && p.Mutating == "" && p.APIService == "" {
		return errors.New("there is nothing to patch: --webhook-name with --patch-validating or --patch-mutating, or --apiservice-name is required")
	}
	return nil
}

func (o *flags) name() types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: o.secret}
}

// run returns a function that checks the flags and does the work. Errors are in the log,
// as its last message.
func (o *flags) run(do func(context.Context, kube.Clients, *slog.Logger) error, check func() error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		log, err := o.logger(command.ErrOrStderr())
		if err != nil {
			return err
		}
		if err = check(); err == nil {
			err = o.act(command.Context(), do, log)
		}
		if err != nil {
			log.Log(command.Context(), levelFatal, command.Name()+" failed", "err", err)
			// Not wrapped: a Job that was stopped has not succeeded.
			return usage.ExitStatus{Status: 1}
		}
		return nil
	}
}

func (o *flags) act(ctx context.Context, do func(context.Context, kube.Clients, *slog.Logger) error, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	klog.SetSlogLogger(log)
	clients, err := kube.Connect(kube.Connection{Kubeconfig: o.kubeconfig, QPS: 10, Burst: 20, UserAgent: Name + "/" + o.build.Version})
	if err != nil {
		return err
	}
	return do(ctx, clients, log)
}

// Levels that log/slog does not have.
const (
	levelTrace = slog.LevelDebug - 4
	levelFatal = slog.LevelError + 4
	levelPanic = slog.LevelError + 8
)

// levelNames are the levels as ingress-nginx's program writes them.
func levelNames() map[string]slog.Level {
	return map[string]slog.Level{
		"panic": levelPanic, "fatal": levelFatal, "error": slog.LevelError, "warn": slog.LevelWarn, "warning": slog.LevelWarn,
		"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": levelTrace,
	}
}

func (o *flags) logger(to io.Writer) (*slog.Logger, error) {
	levels := levelNames()
	level, ok := levels[strings.ToLower(o.level)]
	if !ok {
		return nil, fmt.Errorf("invalid value %q of --log-level: must be panic, fatal, error, warn, info, debug or trace", o.level)
	}
	names := map[slog.Level]string{}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		names[levels[name]] = name
	}
	settings := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if found, is := a.Value.Any().(slog.Level); is && a.Key == slog.LevelKey {
			a.Value = slog.StringValue(names[found])
		}
		return a
	}}
	switch o.format {
	case "text":
		return slog.New(slog.NewTextHandler(to, settings)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, settings)), nil
	}
	return nil, fmt.Errorf("invalid value %q of --log-format: must be text or json", o.format)
}
