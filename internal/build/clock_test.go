package build_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// The API server's clock may jump between two creations, so that the stamps say
// another order than the one in which the objects came. The stamps alone decide
// who wins, and so every replica gives the same answer: the one that existed
// all the time, the one that hears of the objects the other way round, and the
// one that is started later.
func TestClockJumpsBetweenCreations(t *testing.T) {
	const day = 24 * time.Hour
	start := time.Date(2026, 3, 29, 1, 59, 58, 0, time.UTC)
	for name, test := range map[string]struct {
		// sinceStart is what the clock shows at the creation of a, b, c and so on.
		sinceStart []time.Duration
		winner     string
	}{
		"runs":                          {[]time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, "a"},
		"ahead and back":                {[]time.Duration{day, day + time.Second, 2 * time.Second, 3 * time.Second}, "c"},
		"back at the end":               {[]time.Duration{0, time.Second, 2 * time.Second, -2 * day}, "d"},
		"back to a second that it knew": {[]time.Duration{0, time.Second, 0, time.Second}, "c"},
		"stands":                        {[]time.Duration{0, 0, 0, 0}, "d"},
		"stays decades ahead":           {[]time.Duration{20000 * day, 20001 * day, 20002 * day, 20000 * day}, "d"},
		"was at its beginning":          {[]time.Duration{0, start.Sub(time.Unix(0, 0)) * -1, time.Second, 2 * time.Second}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			created := []metav1.Object{}
			for i, since := range test.sinceStart {
				created = append(created, rival(string(rune('a'+i)), start.Add(since)))
			}
			want := restarted(created)
			host := want[unit.Host.Key("a.example.com")]
			if line := "from shop/" + test.winner + ","; !strings.Contains(host, line) {
				t.Errorf("the host is\n%swant %q in it", host, line)
			}
			random := rand.New(rand.NewPCG(1, 1))
			opposite := slices.Clone(created)
			slices.Reverse(opposite)
			orders := [][]metav1.Object{created, opposite}
			for range 10 {
				shuffled := slices.Clone(created)
				random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				orders = append(orders, shuffled)
			}
			for _, order := range orders {
				if got := seenLive(order); !maps.Equal(got, want) {
					t.Errorf("seen live in the order %s:\n%s\nafter a restart:\n%s", names(order), unitsText(got), unitsText(want))
				}
			}
		})
	}
}

// An object that is deleted and created again while the clock is back is older
// than before, and takes over; the one that had won is created again in the
// future, and loses.
func TestClockJumpsBetweenDeletionAndCreation(t *testing.T) {
	start := time.Date(2026, 3, 29, 1, 59, 58, 0, time.UTC)
	a, b := rival("a", start), rival("b", start.Add(time.Second))
	older, younger := rival("b", start.Add(-48*time.Hour)), rival("a", start.Add(24*time.Hour))
	for name, test := range map[string]struct {
		gone, again metav1.Object
		left        []metav1.Object
	}{
		"back":  {b, older, []metav1.Object{a, older}},
		"ahead": {a, younger, []metav1.Object{b, younger}},
	} {
		for _, missed := range []bool{false, true} {
			live := newLive()
			live.see(a, false)
			live.see(b, false)
			// A watch that was broken meanwhile shows the new one alone.
			if !missed {
				live.see(test.gone, true)
			}
			live.see(test.again, false)
			if want := restarted(test.left); !maps.Equal(live.units, want) {
				t.Errorf("%s, the deletion missed: %v: seen live:\n%s\nafter a restart:\n%s",
					name, missed, unitsText(live.units), unitsText(want))
			}
			if host := live.units[unit.Host.Key("a.example.com")]; !strings.Contains(host, "from shop/b,") {
				t.Errorf("%s: the host is\n%swant it from shop/b", name, host)
			}
		}
	}
}

// rival is an Ingress that wants what all the others of its kind want: the same
// path, a certificate for the same host and other settings of the same backend.
func rival(name string, created time.Time) *networkingv1.Ingress {
	kind, class := networkingv1.PathTypePrefix, "nginx"
	color := map[bool]string{true: "red", false: "blue"}[name == "a" || name == "c"]
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(created),
			Annotations: map[string]string{"nginx.ingress.kubernetes.io/color": color},
		},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			TLS:              []networkingv1.IngressTLS{{Hosts: []string{"a.example.com"}, SecretName: name}},
			Rules: []networkingv1.IngressRule{{Host: "a.example.com", IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &kind, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
					}},
				}}},
			}}},
		},
	}
}

// A live is a controller that builds what each change touches.
type live struct {
	store   *store.Store
	builder *build.Builder
	units   map[unit.Key]string
}

func newLive(objects ...metav1.Object) *live {
	l := &live{
		store: newStore(append(objects, &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: "nginx"},
			Spec:       networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"},
		})),
		builder: build.New(fakeFeatures(), "nginx.ingress.kubernetes.io"), units: map[unit.Key]string{},
	}
	rebuild(l.units, l.builder, l.store, l.store.All())
	return l
}

func (l *live) see(object metav1.Object, deleted bool) {
	rebuild(l.units, l.builder, l.store, l.store.Apply(object, deleted))
}

// restarted is what a controller has that starts when all the objects are there.
func restarted(objects []metav1.Object) map[unit.Key]string {
	return newLive(slices.Clone(objects)...).units
}

// seenLive is what a controller has that sees the objects come one by one.
func seenLive(objects []metav1.Object) map[unit.Key]string {
	l := newLive()
	for _, object := range objects {
		l.see(object, false)
	}
	return l.units
}

func names(objects []metav1.Object) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetName())
	}
	return fmt.Sprint(all)
}
