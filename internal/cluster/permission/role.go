package permission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Subject is the ServiceAccount that permissions are granted to.
type Subject struct{ Namespace, Name string }

// Roles are manifests of the ServiceAccount and of the smallest roles with these
// permissions: a Role in each namespace that a permission is limited to, and a
// ClusterRole for the others. Comments explain each rule.
func Roles(permissions []Permission, to Subject) string {
	places := map[string][]Permission{}
	for _, p := range permissions {
		places[p.Namespace] = append(places[p.Namespace], p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n", quote(to.Name), quote(to.Namespace))
	for _, namespace := range slices.Sorted(maps.Keys(places)) {
		list := rules(places[namespace])
		kind, name := "Role", to.Name
		if namespace == "" {
			// The name must differ between installations in different namespaces.
			kind, name = "ClusterRole", to.Namespace+":"+to.Name
		}
		b.WriteString("---\n")
		if namespace == "" && !slices.ContainsFunc(list, rule.required) {
			b.WriteString("# None of this is required: if you may not grant a ClusterRole, leave it out.\n")
		}
		writeHead(&b, kind, name, namespace)
		b.WriteString("rules:\n")
		for _, r := range list {
			r.write(&b)
		}
		b.WriteString("---\n")
		writeHead(&b, kind+"Binding", name, namespace)
		fmt.Fprintf(&b, "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n  name: %s\n", kind, quote(name))
		fmt.Fprintf(&b, "subjects:\n- kind: ServiceAccount\n  name: %s\n  namespace: %s\n", quote(to.Name), quote(to.Namespace))
	}
	return b.String()
}

func writeHead(b *strings.Builder, kind, name, namespace string) {
	fmt.Fprintf(b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s\n", kind, quote(name))
	if namespace != "" {
		fmt.Fprintf(b, "  namespace: %s\n", quote(namespace))
	}
}

func (r rule) write(b *strings.Builder) {
	for _, p := range r.reasons {
		fmt.Fprintf(b, "# %s: %s.\n# Without it %s.\n", strings.ReplaceAll(p.Verbs, " ", ", "), p.Need, p.Without)
	}
	fmt.Fprintf(b, "- apiGroups: [%q]\n  resources: [%q]\n", r.group, r.resource)
	if r.name != "" {
		fmt.Fprintf(b, "  resourceNames: [%q]\n", r.name)
	}
	fmt.Fprintf(b, "  verbs: [%s]\n", strings.Join(r.verbs, ", "))
}

// quote makes sure that YAML parses a name as a string.
func quote(name string) string { return fmt.Sprintf("%q", name) }
