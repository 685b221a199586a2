// Package explain explains how a request is handled and why: which host its name
// belongs to, which route wins and which ones lose, which settings apply and where
// they come from, which backend answers and which certificate is shown.
//
// It routes with package router, from the units that would be pushed, and lets
// build trace how they are made. It is pure, like build: its result depends only
// on the objects, the query and the given time. It sends nothing, and does not
// know where the objects come from.
package explain

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// Settings are the input of an explanation.
type Settings struct {
	Store    *store.Store
	Builder  *build.Builder
	Features []feature.Feature
	// BoundProfiles replaces the profiles of a host by those that are served (see
	// plan.Desired). It may be nil.
	BoundProfiles func(*model.Host) []finding.Finding
	// Findings are all findings. Those of involved objects are shown.
	Findings []finding.Finding
	// Files returns the files and folders that contain an object, in the form of
	// findings, "file/PATH". It is nil if objects don't come from files.
	Files func(object string) []string
	// HealthPath is the path of the health check for unknown names. Empty means
	// none.
	HealthPath string
	// HTTPSPort is the port for https.
	HTTPSPort uint16
	// Now is the time of the request.
	Now time.Time
}

// Explain explains a request. The only error is a *QueryError.
func Explain(q Query, s Settings) (report.Explanation, error) {
	request, from, err := parse(q)
	x := &explainer{Settings: s, hosts: map[string]*host{}, units: map[unit.Key]unit.Unit{}, involved: map[string]bool{}}
	x.request, x.out.Request = request, request.Request
	if rejected := (invalidRequest{}); errors.As(err, &rejected) {
		x.out.Answers = []report.Answer{{Scheme: request.Scheme, Status: badRequest, Why: rejected.Error()}}
		x.out.Findings = []finding.Finding{}
		return x.out, nil
	}
	if err != nil {
		return report.Explanation{}, &QueryError{err}
	}
	x.from = from
	x.router = router.New(router.Settings{Lookup: x.lookup, HealthPath: s.HealthPath})
	x.run()
	return x.out, nil
}

// An explainer is an explanation in progress.
type explainer struct {
	Settings
	router  *router.Router
	hosts   map[string]*host
	units   map[unit.Key]unit.Unit
	globals model.Globals
	from    netip.Addr
	request request
	// asked is the host that a believed load balancer says the client asked for.
	asked string
	// encrypted is set where the answer is that to a connection by TLS.
	encrypted bool
	// involved are the objects of the explanation, as findings name them.
	involved map[string]bool
	// rejected is set if the TLS handshake fails without a certificate.
	rejected bool
	// chosen is the canary of the route that gets the request.
	chosen prediction.Choice
	out    report.Explanation
}

// A host is a built host with its trace.
type host struct {
	model.Host
	trace routing.HostTrace
}

const (
	badRequest        = 400
	notFound          = 404
	forbidden         = 403
	permanentRedirect = 308
	unavailable       = 503
	healthy           = 200
)

func (x *explainer) run() {
	x.globals, _ = x.Builder.Globals(x.Store)
	x.keep(unit.FromGlobals(x.globals))
	x.involve(x.configMap())
	x.explainClient()
	x.rejected = x.rejects()
	decision := x.router.Route(x.out.Request.Host, x.out.Request.Path)
	x.explainName(decision.Name)
	x.explainCertificate()
	h := x.hosts[decision.Name.Host]
	var won *model.Route
	if h != nil && decision.Page == "" {
		won = x.explainRoutes(decision, h)
	}
	if won != nil {
		x.explainBackends(won, h.trace.Routes[decision.Route.Index])
		x.noteParts(won)
	}
	x.explainProcess(x.out.Request.Scheme == "https")
	x.answer(decision, won)
	x.out.Findings, x.out.Elsewhere = x.findings()
	x.listUnits()
}

// lookup builds the unit that the router needs.
func (x *explainer) lookup(key unit.Key) (u unit.Unit, found bool) {
	if u, found = x.units[key]; found {
		return u, true
	}
	if key.Kind == unit.Host {
		h := &host{}
		if h.Host, h.trace, found, _ = x.Builder.TraceHost(key.Name, x.Store); found {
			if x.BoundProfiles != nil {
				x.BoundProfiles(&h.Host)
			}
			x.hosts[key.Name], u = h, unit.FromHost(h.Host)
		}
	} else {
		built, _ := x.Builder.Unit(key, x.Store)
		u, found = built.Pack()
	}
	if found {
		x.keep(u)
	}
	return u, found
}

func (x *explainer) keep(u unit.Unit) { x.units[u.Key] = u }

func (x *explainer) involve(object string) {
	if object != "" {
		x.involved[object] = true
	}
}

// ingress returns the name of an Ingress, which is involved from then on.
func (x *explainer) ingress(ing *networkingv1.Ingress) string {
	name := ingressName(ing)
	x.involve(name)
	return name
}

// ingressName is empty without an Ingress.
func ingressName(ing *networkingv1.Ingress) string {
	if ing == nil {
		return ""
	}
	return spec.ObjectName(ing)
}

func ingressNames(list []*networkingv1.Ingress) []string {
	names := make([]string, len(list))
	for i, ing := range list {
		names[i] = ingressName(ing)
	}
	return names
}

// findings returns those of involved objects and of the files that contain them.
// Findings of other files are only counted: what is missing there may be related
// to the request.
func (x *explainer) findings() (list []finding.Finding, elsewhere int) {
	if x.Files != nil {
		for _, object := range slices.Collect(maps.Keys(x.involved)) {
			for _, file := range x.Files(object) {
				x.involve(file)
			}
		}
	}
	list = []finding.Finding{}
	for _, f := range x.Findings {
		switch {
		case x.involved[f.Object]:
			list = append(list, f)
		case strings.HasPrefix(f.Object, "file/"):
			elsewhere++
		}
	}
	return finding.Sort(list), elsewhere
}

// listUnits lists the units that the data plane needs, without those that the
// router looked up in vain.
func (x *explainer) listUnits() {
	for _, key := range slices.SortedFunc(maps.Keys(x.units), unit.Key.Compare) {
		x.out.Units = append(x.out.Units, report.Unit{Kind: string(key.Kind), Name: key.Name, Version: x.units[key].Version})
	}
}

// answer returns the client's answers by both schemes.
func (x *explainer) answer(d router.Decision, won *model.Route) {
	for _, scheme := range []string{"http", "https"} {
		a := x.answerOf(d, won, scheme)
		a.Scheme = scheme
		x.out.Answers = append(x.out.Answers, a)
	}
	if x.out.Request.Scheme == "https" {
		slices.Reverse(x.out.Answers)
	}
}

func (x *explainer) answerOf(d router.Decision, won *model.Route, scheme string) report.Answer {
	backend := x.passedThrough()
	switch {
	case backend != "" && scheme == "https":
		return x.answerThrough(backend)
	case x.rejected && scheme == "https":
		return report.Answer{Ends: true, Why: x.whyRejected()}
	}
	x.encrypted = scheme == "https"
	scheme = x.asks(scheme)
	answer, depends := first(x.admissions(scheme))
	if answer.Status == 0 {
		answer = unless(x.answerAdmitted(d, won, scheme), depends)
	}
	return answer
}

// answerAdmitted is the answer to a request that may be routed.
func (x *explainer) answerAdmitted(d router.Decision, won *model.Route, scheme string) report.Answer {
	switch {
	case d.Page == router.WWWRedirectPage:
		return report.Answer{
			Status: cmp.Or(x.globals.Process.RedirectCode, permanentRedirect), Location: scheme + "://" + d.Name.Host + x.request.uri,
			Why: "the name is the www redirect alias of host " + d.Name.Host + x.because(feature.WWWRedirect),
		}
	case d.Page == router.StatusPage && x.from.IsValid() && !x.getsStatus():
		return report.Answer{Status: forbidden, Why: "the status page of NGINX is not for this client"}
	case d.Page != "":
		return report.Answer{Status: healthy, Why: fmt.Sprintf("it is Headgate's built-in %s page, for unknown names", d.Page)}
	case d.Err != nil:
		return report.Answer{Status: d.Status, Why: d.Err.Error()}
	case won == nil:
		return report.Answer{Status: notFound, Why: "no path of the host matches"}
	case d.Status != 0:
		return x.slashRedirect(d, won, scheme)
	case won.Denied:
		answer, _ := first(x.predictions(won, scheme, prediction.DeniedPhase))
		return x.replaced(won, cmp.Or(answer, report.Answer{Status: unavailable, Why: x.whyDenied()}))
	}
	return x.replaced(won, x.answerOnRoute(won, scheme))
}

// answerOnRoute goes through the phases of a request on its route.
func (x *explainer) answerOnRoute(won *model.Route, scheme string) report.Answer {
	answer, depends := first(x.predictions(won, scheme, prediction.RoutePhase))
	if answer.Status != 0 {
		return answer
	}
	backend := x.backendAnswer(won)
	if backend.Status == unavailable && !x.shared() {
		return unless(backend, depends)
	}
	answer, more := first(x.predictions(won, scheme, prediction.LimitPhase))
	if answer.Status != 0 {
		return unless(answer, depends)
	}
	depends = append(depends, more...)
	answer, more = x.authCheck(won, scheme)
	if answer.Status != 0 {
		return unless(answer, depends)
	}
	depends = append(depends, more...)
	answer, more = first(x.predictions(won, scheme, prediction.GuardPhase))
	if answer.Status != 0 {
		return unless(answer, depends)
	}
	return unless(backend, append(depends, more...))
}

// unless adds the conditions under which another answer comes first.
func unless(a report.Answer, depends []string) report.Answer {
	a.Why = strings.Join(append([]string{a.Why}, depends...), "; ")
	return a
}

// whyRejected returns why the TLS handshake fails.
func (x *explainer) whyRejected() string {
	return fmt.Sprintf("no host has the server name of the handshake, and the key %s is set", x.cause(feature.RejectUnknown))
}

// rejects reports whether the TLS handshake fails, as in lua/headgate/client_hello.lua.
func (x *explainer) rejects() bool {
	name, err := x.router.Name(cmp.Or(x.out.Request.TLSName, model.DefaultHost))
	return x.globals.Process.TLS.RejectUnknown && err == nil && name.Host == model.DefaultHost
}

// slashRedirect redirects to the path with a slash at its end.
func (x *explainer) slashRedirect(d router.Decision, won *model.Route, scheme string) report.Answer {
	r := x.out.Request
	location := prediction.EscapePath(r.Path) + "/"
	if !won.Relative {
		location = scheme + "://" + r.Host + location
	}
	if r.Query != "" {
		location += "?" + r.Query
	}
	return report.Answer{Status: d.Status, Location: location, Why: "the rule's path ends with a slash"}
}

func (x *explainer) whyDenied() string {
	which := "an annotation of " + x.out.Route.Ingress
	if x.out.Route.Ingress == "" {
		which = "a setting"
	}
	if i := slices.IndexFunc(x.out.Policies, func(p report.Policy) bool { return p.Denies }); i >= 0 {
		kind := "annotation"
		if x.out.Policies[i].From == string(feature.FromKey) {
			kind = "key"
		}
		which = fmt.Sprintf("the %s %s of %s", kind, x.out.Policies[i].Setting, x.out.Policies[i].Object)
	}
	return "the route answers 503, because " + which + " is rejected (see the findings)"
}

// featureOf returns the zero Feature if there is none of that name.
func (x *explainer) featureOf(p model.Policy) feature.Feature {
	if i := slices.IndexFunc(x.Features, func(f feature.Feature) bool { return f.Name == p.Feature }); i >= 0 {
		return x.Features[i]
	}
	return feature.Feature{}
}
