package adminapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/observe/history"
)

// An Overview answers questions about all that is served.
type Overview struct {
	Table   *overview.Table
	History *history.Log
	// Rates is nil if requests are not counted.
	Rates *overview.Rates
	// Status returns the state of the controller and of NGINX, without counts.
	Status func(context.Context) Status
	// Ejections are the endpoints that workers know to fail.
	Ejections func(context.Context) []overview.Ejection
}

// A Status is the state of the controller and of NGINX.
type Status struct {
	Release string    `json:"release"`
	NGINX   string    `json:"nginx"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`
	// Serving: NGINX has everything and serves. Synced: nothing waits.
	Serving bool `json:"serving"`
	Synced  bool `json:"synced"`
	// Problem is why requests are not served, or why NGINX's state is not known.
	Problem string `json:"problem,omitempty"`
	// Source is where objects come from: a cluster or a folder.
	Source     string         `json:"source"`
	Generation int            `json:"generation"`
	Workers    []Worker       `json:"workers"`
	LastReload *history.Event `json:"last_reload,omitempty"`
	// Metrics: requests are counted.
	Metrics      bool                 `json:"metrics"`
	Hosts        int                  `json:"hosts"`
	Backends     int                  `json:"backends"`
	Certificates int                  `json:"certificates"`
	Findings     int                  `json:"findings"`
	Codes        map[finding.Code]int `json:"codes"`
	// Ejected is the number of endpoints that workers know to fail.
	Ejected int `json:"ejected"`
	// Edges have NGINX, and its workers, if this is a control; nil if they are here.
	Edges *EdgeCount `json:"edges,omitempty"`
}

// A Worker is a process of NGINX that accepts connections.
type Worker struct {
	PID        int `json:"pid"`
	Generation int `json:"generation"`
}

// soon is how long before its end a certificate is a problem.
const soon = 10 * 24 * time.Hour

// notKept is the error where nothing is kept.
const notKept = "not available: needs the flag --dashboard-address"

func addOverview(calls map[string]http.HandlerFunc, from Answers) {
	shown := map[string]func(*Overview, http.ResponseWriter, *http.Request, url.Values, overview.Query){
		"/v1/status": func(o *Overview, w http.ResponseWriter, r *http.Request, _ url.Values, _ overview.Query) {
			o.status(w, r, from)
		},
		"/v1/hosts": (*Overview).hosts, "/v1/routes": (*Overview).routes, "/v1/backends": (*Overview).backends, "/v1/endpoints": (*Overview).endpoints,
		"/v1/certificates": (*Overview).certificates, "/v1/changes": (*Overview).changes, "/v1/rates": (*Overview).rates,
	}
	parameters := map[string][]string{
		"/v1/status": {}, "/v1/routes": {"host", "q", "problems", "offset", "limit"}, "/v1/endpoints": {"backend", "q", "problems", "offset", "limit"},
		"/v1/rates": {"q", "offset", "limit"}, "/v1/changes": {"q", "offset", "limit"},
	}
	for path, show := range shown {
		calls[path] = func(w http.ResponseWriter, r *http.Request) {
			if from.Overview == nil {
				refuse(w, http.StatusNotFound, notKept)
				return
			}
			wanted := r.URL.Query()
			names, some := parameters[path]
			if !some {
				names = []string{"q", "problems", "offset", "limit"}
			}
			if !known(w, wanted, names...) {
				return
			}
			if q, ok := query(w, wanted); ok {
				show(from.Overview, w, r, wanted, q)
			}
		}
	}
}

// known refuses parameters with other names.
func known(w http.ResponseWriter, wanted url.Values, names ...string) bool {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !slices.Contains(names, name) {
			what := "must be " + strings.Join(names, ", ")
			if len(names) == 0 {
				what = "there are none"
			}
			refuse(w, http.StatusBadRequest, fmt.Sprintf("unknown parameter %q: %s", name, what))
			return false
		}
	}
	return true
}

// usualPage is the limit of a part if none is given.
const usualPage = 50

// query reads the parameters that select items.
func query(w http.ResponseWriter, wanted url.Values) (q overview.Query, ok bool) {
	q = overview.Query{Text: wanted.Get("q"), Limit: usualPage}
	for name, place := range map[string]struct {
		value     *int
		low, high int
	}{"offset": {&q.Offset, 0, 1 << 30}, "limit": {&q.Limit, 1, overview.MaxPage}} {
		text := wanted.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < place.low || n > place.high {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("invalid value %q of %s: must be a number from %d to %d", text, name, place.low, place.high))
			return q, false
		}
		*place.value = n
	}
	switch text := wanted.Get("problems"); text {
	case "true":
		q.Problems = true
	case "", "false":
	default:
		refuse(w, http.StatusBadRequest, fmt.Sprintf("invalid value %q of problems: must be true or false", text))
		return q, false
	}
	return q, true
}

func (o *Overview) status(w http.ResponseWriter, r *http.Request, from Answers) {
	s, codes := o.Status(r.Context()), from.Codes()
	s.Edges = countEdges(from.Edges)
	s.Problem = overview.Shorten(s.Problem)
	s.LastReload, s.Metrics = o.History.LastReload(), o.Rates != nil
	s.Hosts, s.Backends, s.Certificates = o.Table.Of()
	s.Codes = codes
	for _, n := range codes {
		s.Findings += n
	}
	failing := map[[2]string]bool{}
	for _, e := range o.Ejections(r.Context()) {
		failing[[2]string{e.Backend, e.Endpoint}] = true
	}
	s.Ejected = len(failing)
	answer(w, http.StatusOK, s)
}

func (o *Overview) hosts(w http.ResponseWriter, _ *http.Request, _ url.Values, q overview.Query) {
	answer(w, http.StatusOK, o.Table.Hosts(q))
}

func (o *Overview) routes(w http.ResponseWriter, _ *http.Request, wanted url.Values, q overview.Query) {
	host := o.Table.Host(wanted.Get("host"))
	if host == nil {
		refuse(w, http.StatusNotFound, noHost(wanted.Get("host")))
		return
	}
	answer(w, http.StatusOK, struct {
		Host *overview.Host `json:"host"`
		overview.Page[overview.Route]
	}{host, o.Table.Routes(host.Name, q)})
}

func noHost(name string) string { return fmt.Sprintf("no host %q", overview.Shorten(name)) }

func (o *Overview) backends(w http.ResponseWriter, r *http.Request, _ url.Values, q overview.Query) {
	answer(w, http.StatusOK, o.Table.Backends(q, o.Ejections(r.Context())))
}

func (o *Overview) endpoints(w http.ResponseWriter, r *http.Request, wanted url.Values, q overview.Query) {
	backend, page := o.Table.Backend(wanted.Get("backend"), q, o.Ejections(r.Context()))
	if backend == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("no backend %q", overview.Shorten(wanted.Get("backend"))))
		return
	}
	answer(w, http.StatusOK, struct {
		Backend *overview.Backend `json:"backend"`
		overview.Page[overview.Endpoint]
	}{backend, page})
}

func (o *Overview) certificates(w http.ResponseWriter, _ *http.Request, _ url.Values, q overview.Query) {
	answer(w, http.StatusOK, o.Table.Certificates(q, time.Now().Add(soon)))
}

func (o *Overview) changes(w http.ResponseWriter, _ *http.Request, _ url.Values, q overview.Query) {
	events := slices.DeleteFunc(o.History.Events(), func(e history.Event) bool { return !mentions(e, strings.ToLower(q.Text)) })
	answer(w, http.StatusOK, overview.Part(events, q))
}

// mentions reports whether an event has a text in lower case.
func mentions(e history.Event, text string) bool {
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return text == "" || has(e.Kind) || has(e.Reason) ||
		slices.ContainsFunc(e.Objects, func(object history.Object) bool { return has(object.Object) }) ||
		slices.ContainsFunc(e.Units, func(u history.Unit) bool { return has(u.Name) })
}

func (o *Overview) rates(w http.ResponseWriter, _ *http.Request, _ url.Values, q overview.Query) {
	if o.Rates == nil {
		answer(w, http.StatusOK, map[string]any{"enabled": false, "items": []string{}, "total": 0})
		return
	}
	rates, over := o.Rates.Now(time.Now())
	sum := overview.Rate{}
	for _, rate := range rates {
		sum.All += rate.All
		sum.Requests += rate.Requests
		for class, value := range rate.Classes {
			sum.Classes[class] += value
		}
	}
	rates = slices.DeleteFunc(rates, func(rate overview.Rate) bool {
		return !strings.Contains(strings.ToLower(rate.Host), strings.ToLower(q.Text))
	})
	answer(w, http.StatusOK, struct {
		Enabled bool          `json:"enabled"`
		Over    float64       `json:"over"`
		All     overview.Rate `json:"all"`
		overview.Page[overview.Rate]
	}{true, over, sum, overview.Part(rates, q)})
}
