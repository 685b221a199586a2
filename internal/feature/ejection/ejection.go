// Package ejection keeps requests away from endpoints that fail, and bounds retries. What it
// sets is done by lua/headgate/ejection.lua and retries.lua.
package ejection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

// The values of the annotation ejection.
const (
	off      = "off"
	connect  = "connect"
	failures = "failures"
)

const (
	percent     = 100
	maxFailures = 1000
	maxStatuses = 20
	maxSeconds  = 24 * 3600
)

var (
	ejection = feature.Setting[string]{
		Annotation: "ejection", Key: "ejection", Default: connect, Parse: mode,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "Which failing endpoints get no requests while others of the backend work, in each worker by itself. connect: those to which no connection can be made, " +
			"until a probe connects to them; failures: also those that fail ejection-failures times in a row, for ejection-time; off: none.",
	}
	consecutive = feature.Setting[int]{
		Annotation: "ejection-failures", Key: "ejection-failures", Default: 5, Parse: feature.Int(1, maxFailures),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "With ejection: failures, the number of tries in a row that end without a response, by a timeout or a closed connection, or with a status of ejection-statuses.",
	}
	statuses = feature.Setting[string]{
		Annotation: "ejection-statuses", Key: "ejection-statuses", Parse: parseStatuses,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "With ejection: failures, the statuses from 500 to 599 that are failures, separated by commas.",
	}
	first = feature.Setting[time.Duration]{
		Annotation: "ejection-time", Key: "ejection-time", Default: 30 * time.Second, Parse: quantity.Seconds(1, maxSeconds),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "Number of seconds of an ejection by failures. If the endpoint fails again soon, the next one is longer by as much, up to ten times.",
	}
	maxShare = feature.Setting[int]{
		Annotation: "ejection-max-share", Key: "ejection-max-share", Default: model.EjectionShare, Parse: feature.Int(1, percent),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "Percentage of the endpoints of a backend that get no requests at most. One endpoint may be ejected in any case, but never the last one. If all are failing, all get requests.",
	}
	retryBudget = feature.Setting[int]{
		Annotation: "retry-budget", Key: "retry-budget", Default: model.RetryShare, Parse: feature.Int(0, percent),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "Percentage of the requests to a backend that may be retried, by proxy-next-upstream. 10 retries a second are possible in any case. What found no connection and goes to an endpoint " +
			"that is not failing is not counted. 100: no limit.",
	}
)

// Feature is ejection and the retry budget.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "ejection",
		Doc:      "Keeps requests away from endpoints that fail, and bounds retries.",
		Settings: []feature.AnySetting{ejection, consecutive, statuses, first, maxShare, retryBudget},
		Backend:  backend,
	}
}

func backend(v feature.Values, out *feature.BackendOut) {
	if budget := retryBudget.Get(v); budget != retryBudget.Default {
		out.Balancing.RetryBudget = model.RetryBudget{Set: true, Percent: budget}
	}
	mode := ejection.Get(v)
	if mode == off {
		out.Balancing.Ejection = model.Ejection{Off: true}
		return
	}
	var e model.Ejection
	if share := maxShare.Get(v); share != maxShare.Default {
		e.Share = share
	}
	if mode == failures {
		e.Failures, e.Statuses, e.Seconds = consecutive.Get(v), statuses.Get(v), int(first.Get(v)/time.Second)
	}
	out.Balancing.Ejection = e
}

func mode(text string) (string, error) {
	if !slices.Contains([]string{off, connect, failures}, text) {
		return "", fmt.Errorf("must be %s, %s or %s", off, connect, failures)
	}
	return text, nil
}

// parseStatuses returns the statuses in order, separated by spaces.
func parseStatuses(text string) (string, error) {
	entries, err := feature.List(text)
	if err != nil {
		return "", err
	}
	var list []string
	for _, entry := range entries {
		status, err := strconv.Atoi(entry)
		if err != nil || status < 500 || status > 599 || len(entry) != 3 || len(entries) > maxStatuses {
			return "", fmt.Errorf("must be at most %d numbers from 500 to 599, separated by commas", maxStatuses)
		}
		list = append(list, entry)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " "), nil
}
