package defaultbackend

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/model/prediction"
)

var (
	customErrors = feature.Setting[statuses]{
		Annotation: "custom-http-errors", Parse: feature.Optional(parseStatuses(400)), Risk: feature.Low,
		Doc: "The statuses of responses that the Service of default-backend replaces, separated by commas, or else --default-backend-service; without endpoints, Headgate's own page with the same status does. It gets X-Code with the status, X-Original-URI, and the headers of default-backend. Replaces the list of the key. 408, 444, 494 to 497 and 499 can't be replaced.",
	}
	everyErrors = feature.Setting[statuses]{
		Key: "custom-http-errors", Parse: feature.Optional(parseStatuses(300)), OnInvalid: feature.UseStrictest,
		Doc: "The same for all paths whose Ingress has no list of its own, and also for statuses from 300.",
	}
	ownOnly = feature.Setting[bool]{
		Annotation: "disable-proxy-intercept-errors", Key: "disable-proxy-intercept-errors", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Replaces only errors that Headgate or NGINX makes: those of backends reach clients. The key does not apply to the list of an annotation custom-http-errors.",
	}
)

// Both lists may be cut where there are too many profiles: the client then gets the error.
var (
	catches    = directive.Directive{Name: "error_page", Kind: directive.Statuses, Order: directive.Within}
	catchesOwn = directive.Directive{Name: "own_error_page", Kind: directive.OwnStatuses, Order: directive.Within}
)

// statuses are in ascending order.
type statuses []int

func (s statuses) String() string {
	if len(s) == 0 {
		return "none"
	}
	words := make([]string, len(s))
	for i, status := range s {
		words[i] = strconv.Itoa(status)
	}
	return strings.Join(words, ", ")
}

// parseStatuses returns a parser of lists. A comma may stand at their end. Beside an error it
// returns what the list has of statuses.
func parseStatuses(lowest int) func(string) (statuses, error) {
	return func(text string) (list statuses, err error) {
		for word := range strings.SplitSeq(strings.TrimSuffix(text, ","), ",") {
			status, bad := strconv.Atoi(strings.TrimSpace(word))
			if bad != nil || status < lowest || status > 599 {
				err = fmt.Errorf("must be statuses from %d to 599, separated by commas", lowest)
				continue
			}
			list = append(list, status)
		}
		slices.Sort(list)
		return slices.Compact(list), err
	}
}

// policy is what default_backend.lua reads of a route.
type policy struct {
	Statuses statuses `json:"statuses"`
	// Default is the key of the default backend.
	Default string `json:"default,omitempty"`
}

// routeErrors reports whether the route replaces errors. None: no backend can.
func routeErrors(v feature.Values, out *feature.RouteOut, none bool) bool {
	list, own := customErrors.Get(v), ownOnly.Get(v)
	if len(list) == 0 {
		list = everyErrors.Get(v)
	} else {
		if lost := slices.DeleteFunc(slices.Clone(list), directive.Catchable); len(lost) > 0 {
			out.Warn(customErrors, finding.NotSupported, fmt.Sprintf("NGINX can't replace responses with the status %s", lost), "clients get them as they are")
		}
		own = own && v.IsSet(ownOnly) && !v.Rejects(ownOnly)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(status int) bool { return !directive.Catchable(status) })
	if none || len(list) == 0 {
		return false
	}
	by := catches
	if own {
		by = catchesOwn
	}
	out.Route.Profile = out.Route.Profile.With(by.Catch(list))
	feature.Add(out.Route, name, policy{list, out.Host.DefaultBackend})
	return true
}

// replaced decides as default_backend.lua does.
func replaced(p any, status int) (byDefault string, ok bool) {
	of, _ := p.(policy)
	return of.Default, slices.Contains(of.Statuses, status)
}

// part says why a default backend answers no request.
func part(q prediction.Request, annotation, _ string) string {
	_, replaces := q.Policy.(policy)
	switch {
	case annotation != defaultBackend.Annotation || replaces:
		return ""
	case q.Backend == "":
		return "no rule matches, and it stands in for the Services of rules only"
	case q.HasEndpoint(q.Backend):
		return "the Service of the path has endpoints, and there are no " + customErrors.Annotation
	}
	return ""
}
