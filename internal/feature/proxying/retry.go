package proxying

import (
	"errors"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

var (
	retry = feature.Setting[model.RetryConditions]{
		Annotation: "proxy-next-upstream", Key: "proxy-next-upstream", Default: model.Failure | model.Timeout, Parse: parseRetryConditions, Risk: feature.Medium,
		Doc: "The conditions under which a request is sent to the next endpoint, separated by spaces, or off.",
	}
	retryTime = feature.Setting[time.Duration]{
		Annotation: "proxy-next-upstream-timeout", Key: "proxy-next-upstream-timeout", Default: 0, Parse: quantity.Seconds(0, maxSeconds), Risk: feature.Low,
		Doc: "Number of seconds after which a request is not retried; 0 for no limit. Rounded up to 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800 or 3600; more means no limit.",
	}
	retryTries = feature.Setting[int]{
		Annotation: "proxy-next-upstream-tries", Key: "proxy-next-upstream-tries", Default: model.Tries, Parse: feature.Int(0, model.MaxTries), Risk: feature.Low,
		Doc: "Maximum number of tries of a request, the first one included. 0: each endpoint once.",
	}
	retryNonIdempotent = feature.Setting[bool]{
		Key: "retry-non-idempotent", Default: false, Parse: feature.Bool,
		Doc: "Adds non_idempotent to proxy-next-upstream: POST, LOCK and PATCH requests are retried as well.",
	}
)

// parseRetryConditions reads NGINX's names, separated by spaces. As in NGINX, off disables
// retries, even beside other names.
func parseRetryConditions(text string) (model.RetryConditions, error) {
	var set model.RetryConditions
	off := false
	for _, word := range strings.Fields(text) {
		one, ok := model.RetryConditionOf(word)
		if !ok && word != "off" {
			return 0, errors.New("must be off, or a list separated by spaces of " + strings.ReplaceAll((model.AllRetryConditions).String(), " ", ", "))
		}
		if ok {
			set |= one
		}
		off = off || !ok
	}
	switch {
	case off:
		return 0, nil
	case set == 0:
		return 0, errors.New("must not be empty; off disables retries")
	}
	return set, nil
}

// retryConditions is 0 for no retries. NonIdempotent alone has no effect, and must not make
// another profile.
func retryConditions(v feature.Values) model.RetryConditions {
	set := retry.Get(v)
	if set != 0 && retryNonIdempotent.Get(v) {
		set |= model.NonIdempotent
	}
	if set == model.NonIdempotent {
		return 0
	}
	return set
}

// retrySteps are in seconds.
var retrySteps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600}

// retryStep is the least step that is not below the limit; beyond the last one
// there is no limit.
func retryStep(limit time.Duration) time.Duration {
	if limit == 0 {
		return 0
	}
	for _, seconds := range retrySteps {
		if step := time.Duration(seconds) * time.Second; step >= limit {
			return step
		}
	}
	return 0
}
