package basicauth

import (
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
)

// predict checks no passwords: a request with one passes if that is right.
func predict(q prediction.Request) prediction.Answer {
	scheme := "Basic "
	if p, _ := q.Policy.(policy); p.Digest {
		scheme = "Digest "
	}
	if given, _ := q.Header("authorization"); len(given) >= len(scheme) && strings.EqualFold(given[:len(scheme)], scheme) {
		return prediction.Answer{Why: "this depends on the user name and password, which explain does not check (auth-secret)"}
	}
	return prediction.Answer{Status: 401, Why: "the request has no user name and password (auth-type)"}
}
