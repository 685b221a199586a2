package authority

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/cluster/permission"
)

// Permissions are those that a Keeper needs.
func Permissions(s Settings) []permission.Permission {
	const closed, untrusted = "edges can't connect, unless the Secret exists", "edges can't connect once the authority ends"
	secret := permission.Permission{
		Resource: "secrets", Group: corev1.GroupName, Namespace: s.Name.Namespace, Verbs: "create",
		Need: "to create the Secret with the authority of edges", Without: closed,
	}
	kept := secret
	kept.Name, kept.Verbs = s.Name.Name, "get"
	kept.Need, kept.Without = "to sign the certificates of edges", "edges can't connect"
	renewed := kept
	renewed.Verbs, renewed.Need, renewed.Without = "update", "to renew the authority of edges", untrusted
	shown := permission.Permission{
		Resource: "configmaps", Group: corev1.GroupName, Namespace: s.Name.Namespace, Verbs: "create",
		Need: "to create the ConfigMap with the authority that edges trust", Without: "edges can't start, unless the ConfigMap exists",
	}
	published := shown
	published.Name, published.Verbs = s.Name.Name, "get update"
	published.Need, published.Without = "to publish the authority that edges trust", untrusted
	return []permission.Permission{secret, kept, renewed, shown, published}
}

// ReviewPermission is that which a Reviewer needs.
func ReviewPermission() permission.Permission {
	return permission.Permission{
		Resource: "tokenreviews", Group: authenticationv1.GroupName, Verbs: "create",
		Need: "to review the tokens of edges", Without: "edges get no certificate",
	}
}
