package review_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// TestAgreesWithTheController reviews random Ingresses in random clusters. What is decided
// must be what a controller finds that has the Ingress, and afterwards the Reviewer must be
// as if it had never seen it.
func TestAgreesWithTheController(t *testing.T) {
	refused := 0
	again := freshStores(settings())
	const runs, steps = 8, 40
	for run := range uint64(runs) {
		random := rand.New(rand.NewPCG(run, 1))
		objects := map[string]metav1.Object{}
		for _, o := range fixedObjects(random) {
			objects[key(o)] = o
		}
		r := reviewer(t, settings(), slices.Collect(maps.Values(objects))...)
		for range steps {
			ing := randomIngress(random)
			if was := objects[key(ing)]; was != nil {
				ing.CreationTimestamp = was.(*networkingv1.Ingress).CreationTimestamp
				if reflect.DeepEqual(was, ing) {
					continue
				}
			}
			d := decide(t, r, ing)
			if !d.Allowed() {
				refused++
			}
			with := maps.Clone(objects)
			with[key(ing)] = ing
			compare(t, run, d, ing, with, again)
			same(t, run, r, objects, again)
			if random.IntN(3) == 0 {
				objects = with
				review.Load(r, []source.Change{{Object: ing}})
			}
		}
	}
	if refused < runs*steps/10 || refused > runs*steps*9/10 {
		t.Errorf("%d of %d were refused: the random Ingresses show too little", refused, runs*steps)
	}
}

// A fresh is what a controller has that starts with the objects.
type fresh func(objects map[string]metav1.Object) (*store.Store, *build.Builder)

func freshStores(s review.Settings) fresh {
	// It takes long to make, and does not keep state.
	builder := build.New(s.Features, s.AnnotationPrefix)
	return func(objects map[string]metav1.Object) (*store.Store, *build.Builder) {
		st := store.New(s.Store, builder.Refer)
		st.Apply(&networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: s.Store.ControllerClass},
		}, false)
		for _, o := range objects {
			st.Apply(o, false)
		}
		return st, builder
	}
}

func compare(t *testing.T, seed uint64, d review.Decision, ing *networkingv1.Ingress, with map[string]metav1.Object, again fresh) {
	t.Helper()
	st, builder := again(with)
	stranger := false
	for _, host := range []string{"_", "a.test", "www.a.test", "b.test", "www.b.test", "*.a.test", "x.a.test", "www.x.a.test", "y.test"} {
		for _, s := range st.Strangers(host) {
			stranger = stranger || s.Ingress == ing
		}
	}
	var want []finding.Finding
	for _, k := range st.All() {
		_, fs := builder.Unit(k, st)
		for _, f := range fs {
			if f.Object == spec.ObjectName(ing) && review.VerdictOf(f, prefix) == review.Refuse && (f.Code != finding.HostOwned || stranger) {
				want = append(want, f)
			}
		}
	}
	// What only the webhook refuses has no effect.
	got := slices.DeleteFunc(slices.Clone(d.Refused), func(f finding.Finding) bool { return f.Effect == "" })
	if want = finding.Sort(want); !slices.Equal(got, want) {
		t.Fatalf("seed %d: %s is refused because of %v; the controller finds %v\n%v", seed, ing.Name, got, want, ing)
	}
}

// same fails if the Reviewer builds anything else than a controller with the objects.
func same(t *testing.T, seed uint64, r *review.Reviewer, objects map[string]metav1.Object, again fresh) {
	t.Helper()
	st, builder := review.State(r)
	want, wantBuilder := again(objects)
	keys := st.All()
	if !slices.Equal(keys, want.All()) {
		t.Fatalf("seed %d: units %v, want %v", seed, keys, want.All())
	}
	for _, k := range keys {
		got, gotFindings := builder.Unit(k, st)
		wanted, wantedFindings := wantBuilder.Unit(k, want)
		if packed(got) != packed(wanted) || !slices.Equal(gotFindings, wantedFindings) {
			t.Fatalf("seed %d: after a review, %v is %v %v, want %v %v", seed, k, got, gotFindings, wanted, wantedFindings)
		}
	}
}

func packed(b unit.Built) string {
	u, _ := b.Pack()
	return u.Version
}

func key(o metav1.Object) string {
	return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
}

// fixedObjects are those that Ingresses refer to.
func fixedObjects(random *rand.Rand) []metav1.Object {
	ownership := []string{"namespace", "shared"}[random.IntN(2)]
	objects := []metav1.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: "options"},
		Data:       map[string]string{"host-ownership": ownership, "annotation-value-word-blocklist": "evil"},
	}}
	for _, namespace := range namespaces {
		objects = append(objects,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "users"}, Data: map[string][]byte{"auth": []byte("a:{PLAIN}b\n")}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tls"}, Data: map[string][]byte{"tls.crt": []byte("rubbish")}})
	}
	return objects
}

var namespaces = []string{"a", "b"}

var annotations = [][2]string{
	{"upstream-vhost", "x.test"}, {"upstream-vhost", "x y"}, {"proxy-read-timeout", "5"}, {"proxy-read-timeout", "x"},
	{"server-alias", "b.test"}, {"server-alias", "x.a.test,y.test"}, {"server-alias", "~("}, {"from-to-www-redirect", "true"},
	{"use-regex", "true"}, {"rewrite-target", "/$1"}, {"auth-type", "basic"}, {"auth-secret", "users"}, {"auth-secret", "tls"},
	{"canary", "true"}, {"canary", "false"}, {"canary-weight", "5"}, {"host-shared-with", "a"}, {"affinity", "cookie"},
	{"custom-headers", "evil"}, {"no-such-thing", "x"}, {"auth-tls-secret", "a/tls"}, {"load-balance", "ewma"}, {"load-balance", "?"},
	{"ssl-ciphers", "AES128-SHA"}, {"ssl-ciphers", "x;"}, {"service-upstream", "true"}, {"configuration-snippet", "deny all;"},
}

func randomIngress(random *rand.Rand) *networkingv1.Ingress {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	host := func() string { return pick("", "a.test", "b.test", "www.b.test", "*.a.test", "x.a.test") }
	path := func() string { return pick("/", "/a", "/a/", "/b", "/(a", "/(.*)") }
	ing := ingress(pick(namespaces...), pick("i", "j", "k", "l"), random.IntN(5), host(), path(), path())
	ing.Annotations = map[string]string{}
	for range random.IntN(4) {
		a := annotations[random.IntN(len(annotations))]
		ing.Annotations[prefix+"/"+a[0]] = a[1]
	}
	for i := range ing.Spec.Rules[0].HTTP.Paths {
		kind := networkingv1.PathType(pick("Prefix", "Exact", "ImplementationSpecific"))
		ing.Spec.Rules[0].HTTP.Paths[i].PathType = &kind
	}
	if random.IntN(2) == 0 {
		ing.Spec.Rules = append(ing.Spec.Rules, ingress("", "", 0, host(), path()).Spec.Rules...)
	}
	if random.IntN(3) == 0 {
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{ing.Spec.Rules[0].Host}, SecretName: "tls"}}
	}
	if random.IntN(8) == 0 {
		ing.Spec.DefaultBackend = &ing.Spec.Rules[0].HTTP.Paths[0].Backend
		if random.IntN(2) == 0 {
			ing.Spec.Rules = nil
		}
	}
	if random.IntN(8) == 0 {
		*ing.Spec.IngressClassName = "other"
	}
	return ing
}
