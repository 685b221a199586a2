package cors_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/cors"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// read is the policy of a route with these annotations beside enable-cors, nil
// if it has none, and the findings.
func read(annotations map[string]string) (any, []feature.Problem) {
	annotations["enable-cors"] = "true"
	route, problems := featuretest.Read(cors.Feature(), annotations, nil, feature.Objects{})
	if len(route.Policies) == 0 {
		return nil, problems
	}
	return route.Policies[0].Value, problems
}

// origins say who is allowed by which annotation. The data plane is held to
// them too.
var origins = []struct {
	allow, origin string
	want          bool
}{
	{"http://o.example:8080", "http://o.example:8080", true}, {"http://o.example:8080", "http://o.example", false},
	{"http://o.example:8080", "https://o.example:8080", false}, {"http://o.example", "xhttp://o.example", false},
	{"http://o.example", "http://o.example.evil", false}, {"http://o.example", "http://oXexample", false},
	{"http://o.example", "HTTP://O.example", true}, {"http://O.example", "http://o.example", true},
	{"http://o.example", "http://o.example, http://o.example", false}, {"http://o.example", "null", false}, {"http://o.example", "", false},
	{"https://*.o.example", "https://a.o.example", true}, {"https://*.o.example", "https://A.O.example", true},
	{"https://*.o.example", "https://a.b.o.example", false}, {"https://*.o.example", "https://o.example", false},
	{"https://*.o.example", "https://.o.example", false}, {"https://*.o.example", "http://a.o.example", false},
	{"https://*.o.example", "https://a.o.example:8443", false}, {"https://*.o.example", "https://evil/a.o.example", false},
	{"https://*.o.example", "https://evil:1@a.o.example", false}, {"https://*.o.example", "https://ao.example", false},
	{"https://*.o.example", "http://aaa.o.example", false}, {"https://*.o.example", "xhttps://a.o.example", false}, {"https://*.o.example", "https://a.o.example.evil", false},
	{"http://*.o.example:8080", "http://a.o.example:8080", true}, {"http://*.o.example:8080", "http://a.o.example", false},
	{"app://localhost", "app://localhost", true}, {"null", "null", true}, {"null", "http://o.example", false},
	{"http://one.example , http://two.example,", "http://two.example", true}, {"o.example, http://good.example", "http://good.example", true},
	{"o.example", "http://o.example", false}, {"http://o.example/(x)", "http://o.example", false}, {"", "http://o.example", false},
	{"*", "http://o.example", true}, {"*", "", true}, {"http://o.example, *", "", true},
}

func TestPredict(t *testing.T) {
	t.Parallel()
	for _, c := range origins {
		p, _ := read(map[string]string{"cors-allow-origin": c.allow})
		q := prediction.Request{Method: "OPTIONS", Policy: p}
		if c.origin != "" {
			q.Headers = map[string][]string{"Origin": {c.origin}}
		}
		if p != nil && (cors.Feature().Predict[prediction.RoutePhase](q).Status == 204) != c.want || p == nil && c.want {
			t.Errorf("%q allowed, %q asks: want %v", c.allow, c.origin, c.want)
		}
		q.Method = "GET"
		if got := cors.Feature().Predict[prediction.RoutePhase](q); got.Status != 0 {
			t.Errorf("%q allowed, %q asks by GET: %v", c.allow, c.origin, got)
		}
	}
}

func TestMostOrigins(t *testing.T) {
	t.Parallel()
	list := strings.Repeat("http://a.example,", 200)
	if _, problems := read(map[string]string{"cors-allow-origin": list}); len(problems) != 0 {
		t.Errorf("200 origins: %v", problems)
	}
	p, problems := read(map[string]string{"cors-allow-origin": list + "http://b.example"})
	q := prediction.Request{Method: "OPTIONS", Policy: p, Headers: map[string][]string{"Origin": {"http://b.example"}}}
	if len(problems) != 1 || cors.Feature().Predict[prediction.RoutePhase](q).Status != 0 {
		t.Errorf("201 origins: %v, %v", problems, p)
	}
}

// FuzzOrigins checks that an invalid origin allows none, and never all.
func FuzzOrigins(f *testing.F) {
	for _, c := range origins {
		f.Add(c.allow, c.origin)
	}
	f.Fuzz(func(t *testing.T, allow, origin string) {
		p, problems := read(map[string]string{"cors-allow-origin": allow})
		if p == nil {
			if len(problems) == 0 {
				t.Errorf("%q allows no origin, and there is no finding", allow)
			}
			return
		}
		q := prediction.Request{Method: "OPTIONS", Policy: p, Headers: map[string][]string{"Origin": {origin}}}
		allowed := cors.Feature().Predict[prediction.RoutePhase](q).Status == 204
		if allowed && !strings.Contains(allow, "*") && !strings.Contains(strings.ToLower(allow), strings.ToLower(origin)) {
			t.Errorf("%q allows %q", allow, origin)
		}
	})
}

// FuzzLists holds what can get into headers.
func FuzzLists(f *testing.F) {
	f.Add("GET, PUT", "X-One, X_Two", "X-Out *", "600")
	f.Add("GET\r\nX: y", "a;b", "X-*", "-1")
	f.Fuzz(func(t *testing.T, methods, headers, exposed, age string) {
		p, _ := read(map[string]string{
			"cors-allow-methods": methods, "cors-allow-headers": headers, "cors-expose-headers": exposed, "cors-max-age": age,
		})
		written, err := json.Marshal(p)
		if err != nil || len(written) > 13000 || strings.ContainsAny(string(written), "\r\n\x00\\;$") {
			t.Errorf("%s, %v", written, err)
		}
	})
}
