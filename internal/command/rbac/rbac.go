// Package rbac prints the roles that Headgate needs with given flags.
//
// It knows which flag makes which part of the controller ask for what. What a part asks for
// is declared next to it.
package rbac

import (
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/admission/selfsigned"
	"github.com/headgate/headgate/internal/cluster/authority"
	"github.com/headgate/headgate/internal/cluster/permission"
	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/command/selection"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/observe/event"
	"github.com/headgate/headgate/internal/source/kube"
)

// Command prints the roles that the controller needs with the same flags. What it runs is an argument, as it is one of
// headgate.
func Command() *cobra.Command {
	command := printer((*option.Options).Add)
	command.Use, command.Short = "rbac", "Print the minimal roles for Headgate with the given flags"
	command.Args = usage.OnlyCommands
	control := printer((*option.Options).AddControl)
	control.Use, control.Short = "control", "Print the minimal roles for a control with the given flags"
	control.Long = control.Short + ".\n\nAll flags of headgate are flags of a control, too."
	edge := printer((*option.Options).AddEdge)
	edge.Use, edge.Short = "edge", "Say that an edge needs no roles"
	edge.RunE = func(*cobra.Command, []string) error {
		return errors.New("an edge has no access to the cluster: it needs no roles")
	}
	command.AddCommand(control, edge)
	return command
}

// printer prints roles for flags.
func printer(add func(*option.Options, *pflag.FlagSet)) *cobra.Command {
	var o option.Options
	var to permission.Subject
	command := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			list, err := permissions(o, to.Namespace)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(command.OutOrStdout(), permission.Roles(list, to))
			return err
		},
	}
	add(&o, command.Flags())
	command.Flags().StringVar(&to.Namespace, "namespace", "headgate", "namespace that Headgate runs in")
	command.Flags().StringVar(&to.Name, "service-account", "headgate", "ServiceAccount that Headgate runs as")
	return command
}

// permissions are those that Headgate needs with these flags in a namespace.
func permissions(o option.Options, own string) ([]permission.Permission, error) {
	if o.ManifestsDir != "" {
		return nil, errors.New("--manifests-dir serves a folder instead of a cluster: it needs no roles")
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	objects, err := o.Store(false)
	if err != nil {
		return nil, err
	}
	var pod types.NamespacedName
	if o.Topology && !o.IsControl() {
		pod = types.NamespacedName{Namespace: own, Name: "its own"}
	}
	settings := o.Kube(objects, pod, o.WritesStatus())
	settings.Namespaces = settings.Namespaces || o.EdgeGroups()
	list := kube.Permissions(settings)
	namespaces := []string{o.WatchNamespace}
	for _, configMap := range []types.NamespacedName{objects.ConfigMap, objects.TCPServices, objects.UDPServices} {
		if configMap.Name != "" {
			namespaces = append(namespaces, configMap.Namespace)
		}
	}
	list = append(list, event.Permissions(own, namespaces...)...)
	if o.WebhookSelfSigned {
		list = append(list, selfsigned.Permissions(o.SelfSignedSettings(own))...)
	}
	if o.IsControl() && !o.CertificateFiles() {
		list = append(list, authority.Permissions(authority.Settings{Name: o.Authority(own)})...)
		list = append(list, authority.ReviewPermission())
	}
	if o.DisableElection {
		return list, nil
	}
	list = append(list, ElectionPermissions(own, o.ElectionID)...)
	if o.UpdateStatus {
		list = append(list, StatusPermissions(o, own)...)
	}
	return list, nil
}

// StatusPermissions are for writing the addresses of Headgate into Ingresses.
func StatusPermissions(o option.Options, own string) []permission.Permission {
	const unwritten = "the status of Ingresses is not updated"
	list := []permission.Permission{
		{
			Resource: "ingresses", Group: networkingv1.GroupName, Namespace: o.WatchNamespace, Verbs: "get",
			Need: "to read the newest version of an Ingress before writing its status", Without: unwritten,
		},
		{
			Resource: "ingresses/status", Group: networkingv1.GroupName, Namespace: o.WatchNamespace, Verbs: "update",
			Need: "to write the addresses of Headgate into the status of Ingresses", Without: unwritten,
		},
	}
	fromNodes := o.PublishService == "" && o.PublishAddresses == ""
	for _, namespace := range podsIn(o, own, fromNodes) {
		list = append(list, permission.Permission{
			Resource: "pods", Group: corev1.GroupName, Namespace: namespace, Verbs: "list",
			Need: "to find the replicas and edges, and their Nodes", Without: "the last replica does not remove the addresses from the status of Ingresses, and the addresses of Nodes are not written into it",
		})
	}
	switch service, err := selection.ObjectName("publish-service", o.PublishService); {
	case err == nil && service.Name != "":
		list = append(list, permission.Permission{
			Resource: "services", Group: corev1.GroupName, Namespace: service.Namespace, Verbs: "list watch",
			Need: "to read the addresses of --publish-service", Without: unwritten,
		})
	case fromNodes:
		list = append(list, permission.Permission{
			Resource: "nodes", Group: corev1.GroupName, Verbs: "get",
			Need: "to read the addresses of the replicas' Nodes", Without: unwritten,
		})
	}
	return list
}

// podsIn are the namespaces whose Pods are read: for their Nodes, or at the end.
func podsIn(o option.Options, own string, nodes bool) (namespaces []string) {
	if !nodes && !o.UpdateStatusOnShutdown {
		return nil
	}
	for _, account := range o.EdgeAccounts(own) {
		namespaces = append(namespaces, account.Namespace)
	}
	if !o.IsControl() || o.UpdateStatusOnShutdown {
		namespaces = append(namespaces, own)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// ElectionPermissions are for the Lease of the leader election.
func ElectionPermissions(own, name string) []permission.Permission {
	const unelected = "no replica becomes the leader, so the status of Ingresses is not written"
	lease := permission.Permission{
		Resource: "leases", Group: coordinationv1.GroupName, Namespace: own, Verbs: "create",
		Need: "to create the Lease of the leader election", Without: unelected,
	}
	held := lease
	held.Name, held.Verbs, held.Need = name, "get update", "to elect a leader"
	return []permission.Permission{lease, held}
}
