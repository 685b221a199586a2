package plan_test

import (
	"fmt"
	"testing"
)

// NGINX has what many ask for from its start, and what some ask for with the first reload of a host.
func TestCommonProfiles(t *testing.T) {
	t.Parallel()
	globals := usualGlobals()
	common, occasional := globals.Common[0], globals.Occasional
	b := startBench(t, true)
	b.add("common.test", "", common)
	b.reload("")
	odd := unlike(value("client_max_body_size", 77*mib))
	b.add("odd.test", "", odd)
	b.reload(fmt.Sprintf("profile %s is new, usual profiles that are new: %d", odd.Name(), len(occasional)))
	b.add("occasional.test", "", occasional...)
	b.reload("")
	// No host asks for them any more, and they stay.
	b.drop("occasional.test")
	b.drop("odd.test")
	b.reload("")
}
