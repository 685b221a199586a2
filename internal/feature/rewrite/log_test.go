package rewrite_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestLog: rewrites are logged where the annotation asks for it, without a reload, in one line
// each, also for a path with line ends, and in a bounded number.
func TestLog(t *testing.T) {
	t.Parallel()
	rule := func(annotations ...string) string {
		return headgatetest.Ingress("a", "a.test", "/app/(.*)", "web", append([]string{"rewrite-target: /$1"}, annotations...)...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("web") +
		headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web")) + rule() +
		headgatetest.Ingress("b", "b.test", "/app/(.*)", "web", "rewrite-target: https://example.com/$1", "enable-rewrite-log: true")})
	logged := func(expression string) bool {
		return regexp.MustCompile(`level=INFO msg="\[lua\] [^"]*host [ab]\.test: rewrite-target: ` + expression + `.* client: 127\.0\.0\.1`).MatchString(g.Log.String())
	}
	g.Get("a.test", "/app/before").WantStatus(t, 200)
	g.Apply(rule("enable-rewrite-log: true"))
	g.Get("a.test", "/app/one?x=1").WantStatus(t, 200)
	g.Get("b.test", "/app/two").WantStatus(t, 302)
	headgatetest.Eventually(t, "rewrites are logged", func() bool {
		return logged(`[^ ]+/app/\([^ ]+ matches ..?/app/one..?, which becomes ..?/one`) && logged(`.* matches ..?/app/two..?, which becomes ..?https://example\.com/two`)
	})
	g.Get("a.test", "/app/x%0a2025/11/21%2012:00:00%20[emerg]%201%231:%20forged%00%1b").WantStatus(t, 400)
	g.Get("a.test", "/app/x%0a2025/11/21%2012:00:00%20[emerg]%201%231:%20forged%1b").WantStatus(t, 200)
	headgatetest.Eventually(t, "a path with a line end is logged", func() bool { return logged(`.*/app/x\\\\x0a2025/11/21 12:00:00 \[emerg\] 1#1: forged\\\\x1b`) })
	for line := range strings.Lines(g.Log.String()) {
		if strings.Contains(line, "forged") && !strings.Contains(line, "level=INFO") {
			t.Errorf("a client wrote the line %s", line)
		}
	}
	g.Apply(rule())
	g.Get("a.test", "/app/after").WantStatus(t, 200)
	g.Apply(rule("enable-rewrite-log: true"))
	headgatetest.Eventually(t, "a line says how many were left out", func() bool {
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { g.Get("a.test", "/app/many") })
		}
		group.Wait()
		return logged(`.*/app/many.* \(and [0-9]+ more since the last such line\)`)
	})
	if logged(".*/app/before") || logged(".*/app/after") {
		t.Error("a rewrite is logged without the annotation")
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}
