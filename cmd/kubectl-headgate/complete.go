package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// complete sets how the values of a flag are completed.
func complete(command *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, by); err != nil {
		// The flag does not exist.
		panic(err)
	}
}

// names completes by names that the cluster has. Without a connection there are none.
func (p *plugin) names(list func(context.Context, session) []string) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		s, err := p.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := map[string]bool{}
		for _, name := range list(command.Context(), s) {
			if strings.HasPrefix(name, begun) {
				found[name] = true
			}
		}
		return slices.Sorted(maps.Keys(found)), cobra.ShellCompDirectiveNoFileComp
	}
}

func (p *plugin) completeConfigFlags(root *cobra.Command) {
	complete(root, "namespace", p.names(func(ctx context.Context, s session) (names []string) {
		if list, err := s.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); err == nil {
			for _, object := range list.Items {
				names = append(names, object.Name)
			}
		}
		return names
	}))
	complete(root, "context", func(_ *cobra.Command, _ []string, begun string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if config, err := p.config.ToRawKubeConfigLoader().RawConfig(); err == nil {
			for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
				if strings.HasPrefix(name, begun) {
					names = append(names, name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

func (p *plugin) completePodFlags(command *cobra.Command) {
	complete(command, "pod", p.names(func(ctx context.Context, s session) (names []string) {
		if list, err := s.client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{}); err == nil {
			for _, object := range list.Items {
				names = append(names, object.Name)
			}
		}
		return names
	}))
	complete(command, "deployment", p.names(func(ctx context.Context, s session) (names []string) {
		if list, err := s.client.AppsV1().Deployments(s.namespace).List(ctx, metav1.ListOptions{}); err == nil {
			for _, object := range list.Items {
				names = append(names, object.Name)
			}
		}
		return names
	}))
}

func (p *plugin) completeServices(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.names(func(ctx context.Context, s session) (names []string) {
		if list, err := s.client.CoreV1().Services(s.namespace).List(ctx, metav1.ListOptions{}); err == nil {
			for _, object := range list.Items {
				names = append(names, object.Name)
			}
		}
		return names
	})(command, args, begun)
}

// completeHosts completes by the hosts of all Ingresses, or of those of the namespace.
func (p *plugin) completeHosts(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.names(func(ctx context.Context, s session) (names []string) {
		list, err := s.client.NetworkingV1().Ingresses(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			list, err = s.client.NetworkingV1().Ingresses(s.namespace).List(ctx, metav1.ListOptions{})
		}
		if err != nil {
			return nil
		}
		for _, ing := range list.Items {
			for _, rule := range ing.Spec.Rules {
				if rule.Host != "" {
					names = append(names, rule.Host)
				}
			}
		}
		return names
	})(command, args, begun)
}

// completeBackends completes by what the pod has.
func (p *plugin) completeBackends(pods *podFlags) cobra.CompletionFunc {
	return p.names(func(ctx context.Context, _ session) []string {
		text, err := p.dbgOutput(ctx, *pods, "backends", "list")
		if err != nil {
			return nil
		}
		return strings.Fields(string(text))
	})
}
