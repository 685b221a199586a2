package groups_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/controller/groups"
	"github.com/headgate/headgate/internal/source"
)

// A namespace is of the group that it names. Nothing of one that is not known goes to a group.
func TestGroups(t *testing.T) {
	changes := 0
	g := groups.New(func() { changes++ })
	put := func(name, group string, deleted bool) {
		o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if group != "" {
			o.Annotations = map[string]string{source.GroupAnnotation: group}
		}
		g.Put(source.Change{Object: o, Deleted: deleted})
	}
	put("shop", "public", false)
	put("plain", "", false)
	if g.Takes("") != nil {
		t.Error("an edge without a group does not get everything")
	}
	takes := func(group, namespace string, want bool) {
		t.Helper()
		if got := g.Takes(group)(namespace); got != want {
			t.Errorf("the group %s gets units of %s: %v", group, namespace, got)
		}
	}
	takes("public", "shop", true)
	takes("default", "shop", false)
	takes("default", "plain", true)
	takes("default", "unknown", false)
	if put("shop", "public", false); changes != 2 {
		t.Errorf("%d changes were reported: want those of two namespaces", changes)
	}
	put("shop", "internal", false)
	takes("public", "shop", false)
	takes("internal", "shop", true)
	put("shop", "internal", true)
	takes("internal", "shop", false)
	if changes != 4 {
		t.Errorf("%d changes were reported: want 4", changes)
	}
}
