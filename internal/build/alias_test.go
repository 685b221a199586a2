package build_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/store"
)

// aliased is the n-th oldest Ingress, with hosts of its own and aliases.
func aliased(n, hosts int, aliases ...string) *networkingv1.Ingress {
	ing := ingressOf(n, 0)
	ing.Annotations = map[string]string{"nginx.ingress.kubernetes.io/also": strings.Join(aliases, ",")}
	rule := ing.Spec.Rules[0]
	for i := range hosts {
		rule.Host = fmt.Sprintf("h%d-%d.test", n, i)
		ing.Spec.Rules = append(ing.Spec.Rules, rule)
	}
	return ing
}

func numbered(n int, format string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

// A counted View counts what is asked of it.
type counted struct {
	*store.Store
	ingresses, references int
}

func (c *counted) Ingresses(host string) []*networkingv1.Ingress {
	c.ingresses++
	return c.Store.Ingresses(host)
}

func (c *counted) References(ing *networkingv1.Ingress) spec.References {
	c.references++
	return c.Store.References(ing)
}

// Of two Ingresses that have many hosts in common the older has their aliases;
// that the younger one has none is not found out again for each alias.
func TestManyAliasesOfManyHosts(t *testing.T) {
	t.Parallel()
	const many = 2000
	names, expressions := numbered(many, "a%d.test"), numbered(200, "~^x%d")
	young := func(aliases ...string) *networkingv1.Ingress {
		ing := aliased(0, many, aliases...)
		ing.Name, ing.CreationTimestamp = "young", metav1.NewTime(time.Unix(9, 0))
		return ing
	}
	all := append(names, expressions...)
	v := &counted{Store: newStore([]metav1.Object{aliased(0, many, all...), young(all...)})}
	b := newBuilder()
	for _, name := range names {
		if n, _, found, fs := b.Name(name, v); !found || n.Host != "app-0.example.com" || len(fs) != 1 {
			t.Fatalf("%s: %+v, %v", name, n, fs)
		}
	}
	if p, _, _, fs := b.NamePatterns(v); len(p.Regexes) != 64 || len(fs) == 0 || len(fs) > 250 {
		t.Errorf("%d expressions, %d findings", len(p.Regexes), len(fs))
	}
	// What only the younger one claims: all its hosts are looked at, once.
	v.Apply(young(numbered(many, "late%d.test")...), false)
	for _, name := range numbered(many, "late%d.test") {
		if _, _, found, fs := b.Name(name, v); found || len(fs) != 1 {
			t.Fatalf("%s: found %v, %v", name, found, fs)
		}
	}
	// One list for each name, one for each pattern, one for each host, and few more.
	if most := 3*many + 2*len(expressions); v.ingresses > most || v.references > most {
		t.Errorf("%d lists of Ingresses and %d references were asked for, %d are enough", v.ingresses, v.references, most)
	}
}

// Whose aliases a host has is not found out again for each of its Ingresses.
func TestManyIngressesOfOneHost(t *testing.T) {
	t.Parallel()
	const many = 500
	var objects []metav1.Object
	for i := range many {
		ing := aliased(i, 0, fmt.Sprintf("a%d.test", i))
		ing.Spec.Rules[0].Host = "one.test"
		objects = append(objects, ing)
	}
	v, b := &counted{Store: newStore(objects)}, newBuilder()
	for i := range many {
		if n, _, found, _ := b.Name(fmt.Sprintf("a%d.test", i), v); found != (i == 0) {
			t.Fatalf("%d: found %v, %+v", i, found, n)
		}
	}
	if most := 5 * many; v.ingresses > most || v.references > most {
		t.Errorf("%d lists of Ingresses and %d references were asked for, %d are enough", v.ingresses, v.references, most)
	}
}

// What aliases lead to is forgotten when something changes.
func TestAliasesFollowChanges(t *testing.T) {
	t.Parallel()
	s, b := newStore([]metav1.Object{aliased(1, 0, "a.test", "*.a.test")}), newBuilder()
	want := func(found bool) {
		t.Helper()
		_, _, name, _ := b.Name("a.test", s)
		_, _, patterns, _ := b.NamePatterns(s)
		if name != found || patterns != found {
			t.Errorf("found the name %v, the patterns %v; want %v", name, patterns, found)
		}
	}
	want(true)
	older := aliased(1, 0, "b.test")
	older.Name, older.CreationTimestamp = "older", metav1.NewTime(time.Unix(0, 0))
	s.Apply(older, false)
	want(false)
	s.Apply(older, true)
	want(true)
	// Another View is not the same.
	if _, _, found, _ := b.Name("a.test", newStore(nil)); found {
		t.Error("found in an empty store")
	}
}

// All Ingresses together have 1,000 expressions, the oldest first. Who has more
// is reported in its own words.
func TestMaxExpressions(t *testing.T) {
	t.Parallel()
	var objects []metav1.Object
	for i := range 130 {
		ing := aliased(i, 0, numbered(8, fmt.Sprintf("~i%d-x%%d$", i))...)
		ing.Namespace = fmt.Sprintf("team-%d", i/8)
		objects = append(objects, ing)
	}
	p, _, found, fs := newBuilder().NamePatterns(newStore(objects))
	if !found || len(p.Regexes) != 1000 || len(fs) != 40 {
		t.Fatalf("%d expressions, %d findings", len(p.Regexes), len(fs))
	}
	for _, n := range p.Regexes {
		var owner, x int
		if _, err := fmt.Sscanf(n.Name, `~\A(?s:.*?)\K(?:i%d-x%d$)`, &owner, &x); err != nil || owner >= 125 || n.Host != fmt.Sprintf("app-%d.example.com", owner) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	for _, f := range fs {
		if f.Code != finding.TooMany || f.Field != "nginx.ingress.kubernetes.io/also" || strings.Contains(f.String(), `\K`) ||
			!strings.Contains(f.Effect, "i"+f.Object[strings.LastIndex(f.Object, "-")+1:]+"-x") {
			t.Errorf("%s", f)
		}
	}
}

// One namespace has 64 of them, so that others find a place.
func TestMaxExpressionsOfNamespace(t *testing.T) {
	t.Parallel()
	var objects []metav1.Object
	for i := range 10 {
		objects = append(objects, aliased(i, 0, numbered(8, fmt.Sprintf("~i%d-x%%d$", i))...))
	}
	other := aliased(10, 0, "~other")
	other.Namespace = "other"
	p, _, _, fs := newBuilder().NamePatterns(newStore(append(objects, other)))
	if len(p.Regexes) != 65 || len(fs) != 16 {
		t.Fatalf("%d expressions, %d findings", len(p.Regexes), len(fs))
	}
	for _, f := range fs {
		if f.Code != finding.TooMany || !strings.HasPrefix(f.Object, "ingress/shop/app-8") && !strings.HasPrefix(f.Object, "ingress/shop/app-9") {
			t.Errorf("%s", f)
		}
	}
}

// BenchmarkNamePatterns has 1,000 expressions and 10,000 wildcards of 2,000
// Ingresses.
func BenchmarkNamePatterns(b *testing.B) {
	var objects []metav1.Object
	for i := range 2000 {
		aliases := numbered(5, fmt.Sprintf("*.i%d-%%d.test", i))
		if i < 125 {
			aliases = append(aliases, numbered(8, fmt.Sprintf("~i%d-x%%d$", i))...)
		}
		ing := aliased(i, 0, aliases...)
		ing.Namespace = fmt.Sprintf("team-%d", i/8)
		objects = append(objects, ing)
	}
	s, builder := newStore(objects), newBuilder()
	for b.Loop() {
		s.Apply(objects[7], false)
		if p, _, _, _ := builder.NamePatterns(s); len(p.LeadingWildcards)+len(p.TrailingWildcards)+len(p.Regexes) != 11_000 {
			b.Fatal(len(p.LeadingWildcards), len(p.TrailingWildcards), len(p.Regexes))
		}
	}
}
