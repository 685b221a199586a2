package edge

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/observe/tracker"
)

// givenUpPoll is the interval of looks at what workers gave up on.
const givenUpPoll = 5 * time.Second

// givenUp is the owner of findings about regular expressions that workers gave up on.
type givenUp struct{}

// noteGivenUp makes findings of the regular expressions that workers gave up on. They are
// resolved when their host or the aliases change: then they are tried again.
func (e *Edge) noteGivenUp(ctx context.Context) {
	state, err := e.client.State(ctx)
	if err != nil {
		return // NGINX may be about to start again, and the next look is soon
	}
	var fs []finding.Finding
	for _, g := range state.GivenUp {
		fs = append(fs, findingOf(g))
	}
	e.settings.Tracker.Update([]tracker.Part{{Owner: givenUp{}, Findings: finding.Sort(fs)}})
}

func findingOf(g dataplane.GivenUp) finding.Finding {
	f := finding.Finding{
		Object: "ingress/" + g.Namespace + "/" + g.Ingress, Field: "spec.rules", Code: finding.GivenUp,
		Effect: "until the host changes, requests for other namespaces are not compared with it, and those for this one are answered 500 where it fails",
	}
	if strings.HasPrefix(g.Unit, "p:") {
		f.Field, f.Effect = "metadata.annotations", "until aliases change, the alias stands for no names"
	}
	f.Message = fmt.Sprintf("host %s: the regular expression %q took too many steps for many requests; NGINX gave up on it at %s",
		g.Host, finding.Shorten(g.Pattern), time.Unix(g.Since, 0).UTC().Format(time.RFC3339))
	return f
}
