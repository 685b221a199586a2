package lint

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/store"
)

// addOwn finds what only manifests can have wrong: the controller does not care,
// or an API server lets nothing of the kind pass.
func (c *checker) addOwn() {
	for _, change := range c.read.Changes {
		ing, ok := change.Object.(*networkingv1.Ingress)
		if !ok || !c.surveyed.View.Serves(types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}) {
			continue
		}
		for _, f := range finding.Limit(append(pathTypes(ing), c.outsideTLS(ing)...)) {
			c.addFinding(store.Key{}, f)
		}
	}
}

// pathTypes are the findings for paths without a type.
func pathTypes(ing *networkingv1.Ingress) []finding.Finding {
	var fs []finding.Finding
	for i, rule := range ing.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for j, path := range rule.HTTP.Paths {
			if path.PathType == nil {
				fs = append(fs, finding.Finding{
					Object: objectName(ing), Field: fmt.Sprintf("spec.rules[%d].http.paths[%d].pathType", i, j), Code: finding.MissingField,
					Message: "pathType is missing: must be Exact, Prefix or ImplementationSpecific",
					Effect:  "a cluster rejects the Ingress; from a folder the path is served as Prefix",
				})
			}
		}
	}
	return fs
}

// outsideTLS are the findings for hosts that the TLS section of their Ingress
// neither lists nor has a certificate for.
func (c *checker) outsideTLS(ing *networkingv1.Ingress) []finding.Finding {
	if len(ing.Spec.TLS) == 0 {
		return nil
	}
	var listed []string
	for _, entry := range ing.Spec.TLS {
		for _, host := range entry.Hosts {
			listed = append(listed, canonical(host))
		}
	}
	var fs []finding.Finding
	for i, rule := range ing.Spec.Rules {
		host := canonical(rule.Host)
		name, known := c.surveyed.Names[host]
		if host == "" || !known || name.Certificate != "" || slices.Contains(listed, host) {
			continue
		}
		effect := "requests for it are redirected to https, which shows the default certificate"
		if !name.Secured {
			effect = "it is served without https; ingress-nginx redirects it to https and shows the default certificate"
		}
		fs = append(fs, finding.Finding{
			Object: objectName(ing), Field: fmt.Sprintf("spec.rules[%d].host", i), Code: finding.HostOutsideTLS,
			Message: fmt.Sprintf("spec.tls of this Ingress does not list host %s, and none of its certificates covers it", host),
			Effect:  effect,
		})
		listed = append(listed, host)
	}
	return fs
}

func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

func objectName(ing *networkingv1.Ingress) string { return "ingress/" + ing.Namespace + "/" + ing.Name }
