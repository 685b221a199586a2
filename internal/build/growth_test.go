package build_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// dearHosts are hosts of n paths or Ingresses that tenants may write, each of which once
// took time that grew with the square of n.
func dearHosts() map[string]func(n int) []metav1.Object {
	many := func(n int, make func(i int) *networkingv1.Ingress) []metav1.Object {
		list := []metav1.Object{}
		for i := range n {
			list = append(list, make(i))
		}
		return list
	}
	calling := func(i int) *networkingv1.Ingress {
		ing := plainPaths("shop", fmt.Sprint("caller-", i), 2020, fmt.Sprintf("/caller-%d", i), 1)
		ing.CreationTimestamp.Time = ing.CreationTimestamp.Add(time.Duration(i) * time.Hour)
		ing.Annotations = map[string]string{annotationPrefix + "call": fmt.Sprintf("self/check-%d", i)}
		return ing
	}
	return map[string]func(n int) []metav1.Object{
		"calls of the host itself": func(n int) []metav1.Object {
			return append(many(n/2, calling), plainPaths("shop", "paths", 2021, "/p-%d", n/2))
		},
		"calls of the host itself, and expressions": func(n int) []metav1.Object {
			return append(many(n/2, calling), manyPaths("paths", 2021, "/p-%d.*", n/2))
		},
		"canaries": func(n int) []metav1.Object {
			return append(many(n, func(i int) *networkingv1.Ingress { return isCanary(fmt.Sprint("canary-", i), 2020, 1) }),
				plainPaths("shop", "paths", 2021, "/p-%d", n))
		},
		"paths that are left out": func(n int) []metav1.Object {
			return many(4, func(i int) *networkingv1.Ingress {
				return plainPaths(fmt.Sprint("ns-", i), "paths", 2021, fmt.Sprintf("/%d/p-%%d/x", i), 10*n)
			})
		},
		"expressions that are left out": func(n int) []metav1.Object {
			return []metav1.Object{manyPaths("paths", 2021, "/p-%d.*", 10*n), manyPaths("bad", 2020, "/p-%d(", 10*n)}
		},
		"namespaces": func(n int) []metav1.Object {
			return many(2*n, func(i int) *networkingv1.Ingress {
				return plainPaths(fmt.Sprint("ns-", i), "one", 2021, fmt.Sprintf("/p-%d", i), 1)
			})
		},
		"namespaces that have the same path": func(n int) []metav1.Object {
			return many(2*n, func(i int) *networkingv1.Ingress {
				return manyPaths(fmt.Sprint("ing-", i), 2021, "/same.*", 1)
			})
		},
	}
}

func growthBuilder() *build.Builder {
	return build.New(append(fakeFeatures(), caller()), "nginx.ingress.kubernetes.io")
}

// buildDear builds the host, its backends and its explanation.
func buildDear(s *store.Store, explain bool) {
	b := growthBuilder()
	for _, key := range s.All() {
		if key.Kind == unit.Backend || key.Kind == unit.Host {
			b.Unit(key, s)
		}
	}
	if explain {
		b.TraceHost("a.example.com", s)
	}
}

// TestHostsTakeLinearTime builds hosts of n and of 4n parts.
func TestHostsTakeLinearTime(t *testing.T) {
	const n = 150
	for about, objects := range dearHosts() {
		t.Run(about, func(t *testing.T) {
			took := func(n int) time.Duration {
				s := store.New(store.Settings{IngressClass: "nginx", Classless: true}, growthBuilder().Refer)
				for _, o := range objects(n) {
					s.Apply(o, false)
				}
				// Other work on the machine does not count.
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				least := time.Hour
				for range 4 {
					began := threadTime(t)
					buildDear(s, true)
					least = min(least, threadTime(t)-began)
				}
				return least
			}
			few, many := took(n), took(4*n)
			t.Logf("%v for %d, %v for %d", few, n, many, 4*n)
			if many > 9*few+5*time.Millisecond {
				t.Errorf("four times as many take %.1f times as long: %v and %v", float64(many)/float64(few), few, many)
			}
		})
	}
}

func threadTime(t *testing.T) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

func BenchmarkDearHosts(b *testing.B) {
	for about, objects := range dearHosts() {
		for _, n := range []int{500, 2000} {
			b.Run(fmt.Sprintf("%s/%d", about, n), func(b *testing.B) {
				s := store.New(store.Settings{IngressClass: "nginx", Classless: true}, growthBuilder().Refer)
				for _, o := range objects(n) {
					s.Apply(o, false)
				}
				for b.Loop() {
					buildDear(s, false)
				}
			})
		}
	}
}
