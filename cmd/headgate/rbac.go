package main

import (
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/admission/selfsigned"
	"github.com/headgate/headgate/internal/cluster/permission"
	"github.com/headgate/headgate/internal/observe/event"
	"github.com/headgate/headgate/internal/source/kube"
)

// newRBACCommand prints the roles that Headgate needs with the same flags.
func newRBACCommand() *cobra.Command {
	var o options
	var to permission.Subject
	command := &cobra.Command{
		Use:   "rbac",
		Short: "Print the minimal roles for Headgate with the given flags",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			list, err := o.permissions(to.Namespace)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(command.OutOrStdout(), permission.Roles(list, to))
			return err
		},
	}
	o.addFlags(command.Flags())
	command.Flags().StringVar(&to.Namespace, "namespace", "headgate", "namespace that Headgate runs in")
	command.Flags().StringVar(&to.Name, "service-account", "headgate", "ServiceAccount that Headgate runs as")
	return command
}

// permissions are those that Headgate needs with these flags in a namespace.
func (o options) permissions(own string) ([]permission.Permission, error) {
	if o.manifestsDir != "" {
		return nil, errors.New("--manifests-dir serves a folder instead of a cluster: it needs no roles")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	objects, err := o.storeSettings(false)
	if err != nil {
		return nil, err
	}
	var pod types.NamespacedName
	if o.topology {
		pod = types.NamespacedName{Namespace: own, Name: "its own"}
	}
	list := kube.Permissions(o.kubeSettings(objects, pod))
	namespaces := []string{o.watchNamespace}
	for _, configMap := range []types.NamespacedName{objects.ConfigMap, objects.TCPServices, objects.UDPServices} {
		if configMap.Name != "" {
			namespaces = append(namespaces, configMap.Namespace)
		}
	}
	list = append(list, event.Permissions(own, namespaces...)...)
	if o.selfSigned {
		list = append(list, selfsigned.Permissions(o.selfSignedSettings(own))...)
	}
	if o.disableElection {
		return list, nil
	}
	list = append(list, electionPermissions(own, o.electionID)...)
	if o.updateStatus {
		list = append(list, o.statusPermissions(own)...)
	}
	return list, nil
}

// statusPermissions are for writing the addresses of Headgate into Ingresses.
func (o options) statusPermissions(own string) []permission.Permission {
	const unwritten = "the status of Ingresses is not updated"
	list := []permission.Permission{
		{
			Resource: "ingresses", Group: networkingv1.GroupName, Namespace: o.watchNamespace, Verbs: "get",
			Need: "to read the newest version of an Ingress before writing its status", Without: unwritten,
		},
		{
			Resource: "ingresses/status", Group: networkingv1.GroupName, Namespace: o.watchNamespace, Verbs: "update",
			Need: "to write the addresses of Headgate into the status of Ingresses", Without: unwritten,
		},
	}
	fromNodes := o.publishService == "" && o.publishAddresses == ""
	if fromNodes || o.updateStatusOnShutdown {
		list = append(list, permission.Permission{
			Resource: "pods", Group: corev1.GroupName, Namespace: own, Verbs: "list",
			Need: "to find the replicas and their Nodes", Without: "the last replica does not remove the addresses from the status of Ingresses, and the addresses of Nodes are not written into it",
		})
	}
	switch service, err := objectName("publish-service", o.publishService); {
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

// electionPermissions are for the Lease of the leader election.
func electionPermissions(own, name string) []permission.Permission {
	const unelected = "no replica becomes the leader, so the status of Ingresses is not written"
	lease := permission.Permission{
		Resource: "leases", Group: coordinationv1.GroupName, Namespace: own, Verbs: "create",
		Need: "to create the Lease of the leader election", Without: unelected,
	}
	held := lease
	held.Name, held.Verbs, held.Need = name, "get update", "to elect a leader"
	return []permission.Permission{lease, held}
}
