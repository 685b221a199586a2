package build_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

// plainPaths is an Ingress of that year and namespace with n plain paths on a.example.com.
func plainPaths(namespace, name string, year int, path string, n int) *networkingv1.Ingress {
	ing := manyPaths(name, year, path, n)
	ing.Namespace, ing.Annotations = namespace, nil
	return ing
}

func builtHost(t *testing.T, objects ...metav1.Object) (model.Host, []finding.Finding) {
	t.Helper()
	host, _, fs := newBuilder().Host("a.example.com", newStore(objects))
	return host, fs
}

// answering is who answers a request: the Ingress of the route, or 503.
func answering(t *testing.T, h model.Host, path string) string {
	t.Helper()
	units := map[unit.Key]unit.Unit{}
	for _, u := range []unit.Unit{unit.FromHost(h), unit.FromName(model.Name{Name: h.Name, Host: h.Name})} {
		units[u.Key] = u
	}
	decision := router.New(router.Settings{Lookup: func(key unit.Key) (unit.Unit, bool) {
		u, ok := units[key]
		return u, ok
	}}).Route(h.Name, path)
	switch {
	case decision.Route == nil:
		return "nobody"
	case decision.Route.Denied:
		return "503"
	}
	return decision.Route.Origin.Namespace + "/" + decision.Route.Origin.Ingress
}

// TestPathsOfAHostAreBounded: those of the youngest Ingress are denied one by one.
func TestPathsOfAHostAreBounded(t *testing.T) {
	old := plainPaths("shop", "old", 2025, "/old/p-%d", model.MaxHostRoutes-100)
	catchAll := plainPaths("shop", "all", 2024, "/", 1)
	young := plainPaths("shop", "young", 2026, "/young/p-%d", 300)
	host, fs := builtHost(t, young, old, catchAll)
	if n := len(host.Routes); n != model.MaxHostRoutes+201 {
		t.Errorf("%d routes", n)
	}
	for path, want := range map[string]string{
		"/": "shop/all", "/old/p-7": "shop/old", "/young": "shop/all", "/young/p-98": "shop/young", "/young/p-99": "503", "/young/p-299/x": "503",
	} {
		if got := answering(t, host, path); got != want {
			t.Errorf("%s is answered by %s, want %s", path, got, want)
		}
	}
	if len(fs) != 1 || fs[0].Code != finding.TooMany || fs[0].Object != "ingress/shop/young" || fs[0].Field != "spec.rules[0].http.paths[99]" ||
		!strings.Contains(fs[0].Message, "201 paths") {
		t.Errorf("findings %v", fs)
	}
}

// TestPathsBeyondDenials: where paths can't be denied one by one, others of the namespace
// are denied, and none of another one.
func TestPathsBeyondDenials(t *testing.T) {
	most := plainPaths("shop", "most", 2025, "/old/p-%d", model.MaxHostRoutes-4)
	for about, c := range map[string]struct {
		objects    []metav1.Object
		want       map[string]string
		annotation string
	}{
		"below one path": {[]metav1.Object{plainPaths("shop", "young", 2026, "/young/p-%d", model.MaxHostDenials+9)}, map[string]string{
			"/": "shop/all", "/old/p-1": "shop/most", "/young": "503", "/young/p-0": "shop/young", "/young/p-1": "503", "/young/p-300": "503", "/younger": "shop/all",
		}, ""},
		"below a route": {[]metav1.Object{plainPaths("shop", "young", 2026, "/p-%d", model.MaxHostDenials+9)}, map[string]string{
			"/": "503", "/old/p-1": "shop/most", "/p-0": "shop/young", "/p-1": "503", "/p-300": "503",
		}, ""},
		"beside a route with a slash": {[]metav1.Object{
			plainPaths("shop", "slash", 2024, "/p/", 1), plainPaths("shop", "young", 2026, "/p", 1), plainPaths("shop", "more", 2027, "/q/%d", 900),
		}, map[string]string{"/": "shop/all", "/p": "503", "/p/x": "shop/slash", "/q/899": "503", "/x": "shop/all"}, ""},
		"below a route of another namespace": {[]metav1.Object{plainPaths("evil", "young", 2026, "/p-%d", model.MaxHostDenials+9)}, map[string]string{
			"/": "shop/all", "/old/p-1": "shop/most", "/p-300": "shop/all",
		}, ""},
		"a guard of a namespace with few, after another's": {[]metav1.Object{
			plainPaths("evil", "young", 2026, "/p-%d", 9000), plainPaths("shop", "guard", 2027, "/admin", 1),
		}, map[string]string{"/": "shop/all", "/admin": "503", "/admin/x": "503", "/p-300": "shop/all"}, ""},
		"expressions": {[]metav1.Object{
			plainPaths("shop", "young", 2026, "/p-%d", model.MaxHostDenials+9), plainPaths("evil", "young", 2026, "/evil/p-%d", model.MaxHostDenials+9),
		}, map[string]string{"/": "503", "/old/p-1": "shop/most", "/p-300": "503", "/open/x": "503", "/evil/p-400": "503", "/evils/x": "evil/all"}, "true"},
	} {
		all := plainPaths("shop", "all", 2024, "/", 1)
		one := plainPaths("evil", "all", 2024, "/evils", 1)
		open := plainPaths("shop", "open", 2024, "/open", 1)
		if c.annotation != "" {
			open = plainPaths("shop", "open", 2024, "/open/.", 1)
			open.Annotations = map[string]string{annotationPrefix + "regex": "true"}
		}
		host, fs := builtHost(t, append(c.objects, most, all, one, open)...)
		if n := len(host.Routes); n > model.MaxHostRoutes+model.MaxHostDenials+1 {
			t.Errorf("%s: %d routes", about, n)
		}
		for path, want := range c.want {
			if got := answering(t, host, path); got != want {
				t.Errorf("%s: %s is answered by %s, want %s", about, path, got, want)
			}
		}
		if !slices.ContainsFunc(fs, func(f finding.Finding) bool { return f.Code == finding.TooMany }) {
			t.Errorf("%s: findings %v", about, fs)
		}
	}
}

// TestTheRootIsDenied has no room for "/".
func TestTheRootIsDenied(t *testing.T) {
	host, _ := builtHost(t, plainPaths("shop", "most", 2025, "/old/p-%d", model.MaxHostRoutes),
		plainPaths("evil", "young", 2026, "/p-%d", 9000), plainPaths("shop", "root", 2027, "/", 1))
	if got := answering(t, host, "/x"); got != "503" {
		t.Errorf("/x is answered by %s", got)
	}
	if got := answering(t, host, "/old/p-4999"); got != "shop/most" {
		t.Errorf("the last path is answered by %s", got)
	}
}

// TestBytesOfAHostAreBounded gives a host settings that take many bytes, and long paths.
func TestBytesOfAHostAreBounded(t *testing.T) {
	long := plainPaths("shop", "long", 2025, "/long-%d"+strings.Repeat("x", 2000), 150)
	noted := plainPaths("shop", "noted", 2026, "/noted", 1)
	noted.Annotations = map[string]string{annotationPrefix + "note": "big"}
	young := plainPaths("shop", "young", 2027, "/young-%d", 3)
	host, fs := builtHost(t, young, noted, long, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "big"}, Data: map[string]string{"text": strings.Repeat("x", model.MaxHostBytes/2)},
	})
	if got := answering(t, host, "/noted"); got != "503" {
		t.Errorf("/noted is answered by %s", got)
	}
	if got := answering(t, host, "/young-2"); got != "shop/young" {
		t.Errorf("/young-2 is answered by %s: it fits", got)
	}
	if len(fs) != 1 || fs[0].Object != "ingress/shop/noted" || fs[0].Code != finding.TooMany {
		t.Errorf("findings %v", fs)
	}
	long = plainPaths("shop", "long", 2025, "/long-%d"+strings.Repeat("x", 2000), 1500)
	host, _ = builtHost(t, young, long)
	if n := len(unit.FromHost(host).Payload); n < model.MaxHostBytes*9/10 || n > model.MaxHostBytes*11/10+2*model.MaxHostDenialBytes {
		t.Errorf("the payload has %d bytes", n)
	}
}

// TestCanariesCountAsBytes: a host whose routes fit has no room for all of their canaries.
func TestCanariesCountAsBytes(t *testing.T) {
	objects := []metav1.Object{plainPaths("shop", "main", 2024, "/p-%d", 3000)}
	for i := range maxCanaries {
		objects = append(objects, isCanary(fmt.Sprintf("canary-%02d", i), 2025+i, 3000))
	}
	host, fs := builtHost(t, objects...)
	if n := len(unit.FromHost(host).Payload); n > model.MaxHostBytes*11/10 {
		t.Errorf("the payload has %d bytes", n)
	}
	if !slices.ContainsFunc(fs, func(f finding.Finding) bool {
		return f.Code == finding.TooMany && f.Object == fmt.Sprintf("ingress/shop/canary-%02d", maxCanaries-1)
	}) {
		t.Errorf("no finding says that the youngest canary is left out")
	}
}

// TestLimitsAreIndependentOfTheOrder builds a host beyond its limits from objects that came
// in other orders.
func TestLimitsAreIndependentOfTheOrder(t *testing.T) {
	objects := []metav1.Object{
		plainPaths("a", "one", 2024, "/a/p-%d", 3000), plainPaths("b", "two", 2025, "/b/p-%d", 3000),
		plainPaths("a", "three", 2026, "/c/%d/x", 2000), plainPaths("c", "four", 2026, "/p-%d", 90), plainPaths("b", "five", 2027, "/", 1),
	}
	random := rand.New(rand.NewPCG(1, 1))
	first := ""
	for range 5 {
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		host, fs := builtHost(t, objects...)
		text := hostText(host) + fmt.Sprint(fs)
		if first == "" {
			first = text
		}
		if text != first {
			t.Fatal("another order gives another host")
		}
	}
}

// TestRefusedExpressionsAreNotCompiled: of thousands that are wrong, few are looked at.
func TestRefusedExpressionsAreNotCompiled(t *testing.T) {
	_, fs := builtHost(t, manyPaths("bad", 2025, "/bad-%d(", 1000), manyPaths("late", 2026, "/late.", 1))
	if !slices.ContainsFunc(fs, func(f finding.Finding) bool { return f.Object == "ingress/shop/late" && f.Code == finding.TooMany }) {
		t.Errorf("findings %v", fs)
	}
}
