package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/store"
)

func TestTakeSecrets(t *testing.T) {
	s := store.New(settings(), refer)
	step := func(about, want string) {
		t.Helper()
		references := s.TakeSecrets()
		added, removed := references.Added, references.Removed
		byName := func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) }
		slices.SortFunc(added, byName)
		slices.SortFunc(removed, byName)
		if got := fmt.Sprint(added, removed); got != want {
			t.Errorf("%s: got %s, want %s", about, got, want)
		}
	}
	s.Apply(class("nginx", controllerClass), false)
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "x"), false)
	s.Apply(withTLS(ingress("b", "nginx", "b.example / one"), "x"), false)
	s.Apply(withTLS(ingress("c", "other", "c.example / one"), "foreign"), false)
	step("two Ingresses and one of another class", "[shop/x] []")
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "y"), false)
	step("one of them refers to another Secret", "[shop/y] []")
	s.Apply(withTLS(ingress("b", "nginx", "b.example / one"), "y"), false)
	step("the other one follows", "[] [shop/x]")
	s.Apply(ingress("a", "nginx", "a.example / one"), false)
	s.Apply(withTLS(ingress("a", "nginx", "a.example / one"), "y"), false)
	s.Apply(withTLS(ingress("d", "nginx", "d.example / one"), "z"), false)
	s.Apply(ingress("d", ""), true)
	step("what comes and goes between two calls", "[] []")
	s.Apply(class("other", controllerClass), false)
	step("a class that becomes ours", "[shop/foreign] []")
	s.Apply(ingress("a", ""), true)
	s.Apply(ingress("b", ""), true)
	s.Apply(ingress("c", ""), true)
	step("all deleted", "[] [shop/foreign shop/y]")
	step("nothing", "[] []")
}
