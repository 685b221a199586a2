package dataplane_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestTargetsOfGuardedHosts sends targets that can be read as two paths. The
// backend gets them as the client wrote them where every path has the same
// guard, and no other service decides by the path.
func TestTargetsOfGuardedHosts(t *testing.T) {
	t.Parallel()
	authService := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	basic := []string{"auth-type: basic", "auth-secret: users"}
	instance := headgatetest.Start(t, headgatetest.Options{Manifests: usersSecret + headgatetest.Service("app") + headgatetest.Endpoints("app", headgatetest.StartEcho(t, "app")) +
		headgatetest.Ingress("one", "one.test", "/", "app", basic...) +
		headgatetest.Ingress("two", "two.test", "/", "app", basic...) + headgatetest.Ingress("two-b", "two.test", "/b", "app", basic...) +
		headgatetest.Ingress("below", "below.test", "/a", "app", basic...) +
		headgatetest.Ingress("open", "open.test", "/", "app", basic...) + headgatetest.Ingress("open-b", "open.test", "/b", "app") +
		headgatetest.Ingress("acme", "acme.test", "/", "app", basic...) + headgatetest.Ingress("acme-b", "acme.test", challenges, "app", basic...) +
		headgatetest.Ingress("realm", "realm.test", "/", "app", basic...) + headgatetest.Ingress("realm-b", "realm.test", "/b", "app", append(basic, "auth-realm: other")...) +
		headgatetest.Ingress("denied", "denied.test", "/", "app") + headgatetest.Ingress("denied-b", "denied.test", "/b", "app", "auth-type: none") +
		headgatetest.Ingress("any", "any.test", "/", "app", slices.Concat(basic, []string{"satisfy: any"})...) + headgatetest.Ingress("any-b", "any.test", "/b", "app", basic...) +
		headgatetest.Ingress("asked", "asked.test", "/", "app", "auth-url: http://"+authService+"/check") + headgatetest.Config(withHTTP3),
	})
	const target = "/a%2Fb//c/../d?x=%2F"
	for host, want := range map[string]string{
		"one.test": target, "two.test": target, "below.test": target,
		"open.test": "/a/b/d?x=%2F", "acme.test": "/a/b/d?x=%2F", "realm.test": "/a/b/d?x=%2F",
		"denied.test": "/a/b/d?x=%2F", "any.test": "/a/b/d?x=%2F", "asked.test": "/a/b/d?x=%2F",
	} {
		for _, request := range instance.Protocols() {
			request.Host, request.Path, request.Header = host, target, password
			r := instance.Do(request).WantStatus(t, 200)
			if r.Echo.Target != want {
				t.Errorf("%s, %s: the backend was asked for %s, want %s", host, r.Proto, r.Echo.Target, want)
			}
			// What can be read one way only goes on as it is on every host.
			request.Path = "/a%2Fb//%64?x"
			r = instance.Do(request).WantStatus(t, 200)
			if r.Echo.Target != request.Path {
				t.Errorf("%s, %s: the backend was asked for %s, want %s", host, r.Proto, r.Echo.Target, request.Path)
			}
		}
	}
	instance.Do(headgatetest.Request{Host: "one.test", Path: target}).WantStatus(t, 401)
	instance.Do(headgatetest.Request{Host: "one.test", Path: "/a/..;/b", Header: password}).WantStatus(t, 200)
	instance.Do(headgatetest.Request{Host: "open.test", Path: "/x/../a/..;/b", Header: password}).WantStatus(t, 400)
}
