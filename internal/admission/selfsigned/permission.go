package selfsigned

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/cluster/permission"
)

// Permissions are those that a Keeper needs.
func Permissions(s Settings) []permission.Permission {
	const closed, untrusted = "API servers can't connect to the webhook, unless the Secret exists", "the webhook's certificate is not renewed in time"
	secret := permission.Permission{
		Resource: "secrets", Group: corev1.GroupName, Namespace: s.Secret.Namespace, Verbs: "create",
		Need: "to create the Secret with the certificate of the admission webhook", Without: closed,
	}
	kept := secret
	kept.Name, kept.Verbs = s.Secret.Name, "get"
	kept.Need, kept.Without = "to serve the certificate of the admission webhook", "API servers can't connect to the webhook"
	renewed := kept
	renewed.Verbs, renewed.Need, renewed.Without = "update", "to renew the certificate of the admission webhook", untrusted
	configuration := permission.Permission{
		Resource: "validatingwebhookconfigurations", Group: admissionregistrationv1.GroupName, Name: s.Configuration, Verbs: "get update",
		Need: "to have API servers trust the certificate of the admission webhook", Without: "they refuse it, also after it is renewed",
	}
	return []permission.Permission{secret, kept, renewed, configuration}
}
