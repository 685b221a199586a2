package snippet_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	every = flag.Bool("every", false, "compare all pairs of directives with all requests, for minutes")
	only  = flag.String("only", "", "the cases to compare alone: an expression for their names")
)

const (
	allRequests = 500
	fewRequests = 60
	// enough requests that differ say that a text is not followed.
	enough = 3
	// perFront is how many cases are served by one NGINX.
	perFront = 150
	// budget is the time in which cases are begun, without -every.
	budget = 40 * time.Second
)

// TestLikeNGINX compares what snippets do with what NGINX does with the same text in a
// server and a location of the shape of ingress-nginx's: the response, and what the
// backend and the auth service received.
func TestLikeNGINX(t *testing.T) {
	cases := casesOf(*every)
	if *only != "" {
		wanted := regexp.MustCompile(*only)
		cases = slices.DeleteFunc(casesOf(true), func(c snippetCase) bool { return !wanted.MatchString(c.name) })
	}
	many := fewRequests
	if *every || *only != "" {
		many = allRequests
	}
	different := differences(t)
	began, compared, requests := time.Now(), 0, 0
	for part := range slices.Chunk(cases, perFront) {
		t.Run(part[0].name, func(t *testing.T) {
			theirs, part := startReference(t, part)
			ours := startHeadgate(t, part)
			for i, c := range part {
				if many == fewRequests && time.Since(began) > budget {
					return
				}
				compare(t, theirs, ours, hostOf(i), c, requestsOf(seedOf(c), many), different[c.name])
				compared, requests = compared+1, requests+many
			}
		})
	}
	t.Logf("%d of %d cases, %d requests in %v", compared, len(cases), requests, time.Since(began).Round(time.Second))
}

// seedOf draws the same requests for a case, no matter which others there are.
func seedOf(c snippetCase) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(c.name))
	return sum.Sum64()
}

// compare fails if responses differ, or if none does where some should.
func compare(t *testing.T, theirs, ours *side, host string, c snippetCase, requests []request, differs bool) {
	t.Helper()
	different := 0
	for _, r := range requests {
		if c.bodiless {
			r.body = ""
		}
		want, got := theirs.ask(t, host, r), ours.ask(t, host, r)
		diff := cmp.Diff(want, got)
		if diff == "" {
			continue
		}
		if different++; different > enough || differs {
			break
		}
		if different == 1 {
			t.Errorf("%s\nserver %q\nlocation %q\n%s (-NGINX +Headgate):\n%s", c.name, c.server, c.location, r, diff)
		}
	}
	switch {
	case differs && different == 0:
		t.Errorf("%s: is as in NGINX: take it out of testdata/differences.txt", c.name)
	case !differs && different > enough:
		t.Errorf("%s: more than %d requests differ", c.name, enough)
	}
}

// casesOf are each directive alone, and with every in pairs.
func casesOf(every bool) []snippetCase {
	list := directives()
	cases := []snippetCase{{name: "none"}, {name: "none/auth", shape: "auth"}, {name: "none/list", shape: "list"}}
	for _, d := range list {
		for i, text := range d.texts {
			name := fmt.Sprintf("%s/%d", d.name, i)
			if d.in&inLocation != 0 {
				cases = append(cases, snippetCase{name: "location/" + name, location: text, bodiless: d.bodiless})
			}
			if d.in&inServer != 0 {
				cases = append(cases, snippetCase{name: "server/" + name, server: text, bodiless: d.bodiless})
			}
			for _, shape := range []string{"auth", "list"} {
				switch {
				case !d.guards:
				case d.in&inLocation != 0:
					cases = append(cases, snippetCase{name: shape + "/" + name, shape: shape, location: text, bodiless: d.bodiless})
				default:
					cases = append(cases, snippetCase{name: shape + "/" + name, shape: shape, server: text, bodiless: d.bodiless})
				}
			}
		}
	}
	if !every {
		return cases
	}
	return append(cases, pairsOf(list)...)
}

// pairsOf are two directives in one location, and one in the server with one in the
// location; two pairs of texts of any two.
func pairsOf(list []directive) []snippetCase {
	var cases []snippetCase
	for i, a := range list {
		for j, b := range list {
			if a.alone || b.alone {
				continue
			}
			for k := range min(2, max(len(a.texts), len(b.texts))) {
				first, second := a.texts[k%len(a.texts)], b.texts[(k+1)%len(b.texts)]
				name := fmt.Sprintf("%s+%s/%d", a.name, b.name, k)
				if a.in&b.in&inLocation != 0 && (i != j || a.repeats) && first != second {
					cases = append(cases, snippetCase{name: "pair/" + name, location: first + "\n" + second, pair: true})
				}
				if a.in&inServer != 0 && b.in&inLocation != 0 {
					cases = append(cases, snippetCase{name: "both/" + name, server: first, location: second, pair: true})
				}
			}
		}
	}
	return cases
}
