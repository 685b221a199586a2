package permission

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestRoles: what is asked for where is granted there, once, and as little.
func TestRoles(t *testing.T) {
	text := Roles([]Permission{
		{Resource: "secrets", Verbs: "list watch", Namespace: "shop", Need: "to a", Without: NotReady},
		{Resource: "secrets", Verbs: "watch get", Namespace: "shop", Need: "to b", Without: "less"},
		{Resource: "leases", Group: "coordination.k8s.io", Verbs: "get", Name: "yes", Namespace: "own", Need: "to c", Without: "less"},
		{Resource: "leases", Group: "coordination.k8s.io", Verbs: "create", Namespace: "own", Need: "to d", Without: "less"},
		{Resource: "nodes", Verbs: "get", Need: "to e", Without: "less"},
	}, Subject{Namespace: "own", Name: "headgate"})
	var got []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		line := strings.TrimSuffix(role.Kind+" "+role.Namespace+"/"+role.Name, " ")
		for _, r := range role.Rules {
			line += "; " + strings.Join(append(append(append(r.APIGroups, r.Resources...), r.ResourceNames...), r.Verbs...), " ")
		}
		got = append(got, line)
	}
	want := `ServiceAccount own/headgate
ClusterRole /own:headgate;  nodes get
ClusterRoleBinding /own:headgate
Role own/headgate; coordination.k8s.io leases create; coordination.k8s.io leases yes get
RoleBinding own/headgate
Role shop/headgate;  secrets get list watch
RoleBinding shop/headgate`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
	for _, words := range []string{"# None of this is required", "# list, watch: to a.\n# Without it " + NotReady + ".\n# watch, get: to b.\n"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, text)
		}
	}
}
