package groups_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/controller/groups"
	"github.com/headgate/headgate/internal/source"
)

// A namespace is of the group that it names. Nothing of one that is not known goes to a group.
func TestGroups(t *testing.T) {
	moved := 0
	var appeared []string
	g := groups.New(groups.Settings{Moved: func() { moved++ }, Appeared: func(namespace string) { appeared = append(appeared, namespace) }})
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
	if put("shop", "public", false); moved != 0 || !slices.Equal(appeared, []string{"shop", "plain"}) {
		t.Errorf("%q are new, and %d moves were reported", appeared, moved)
	}
	put("shop", "internal", false)
	takes("public", "shop", false)
	takes("internal", "shop", true)
	if put("shop", "internal", true); moved != 1 || len(appeared) != 2 {
		t.Errorf("%q are new, and %d moves were reported", appeared, moved)
	}
	takes("default", "-", false)
}

// In a folder there need not be objects of namespaces.
func TestFolder(t *testing.T) {
	g := groups.New(groups.Settings{Unknown: groups.Default})
	if !g.Takes("default")("shop") || g.Takes("public")("shop") || g.Takes("default")("-") {
		t.Error("a namespace without an object is not in the group default, or what is of none is")
	}
}
