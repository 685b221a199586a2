package snippet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

// predict says what the steps of a snippet may do to a request.
func predict(q prediction.Request) prediction.Answer {
	switch p := q.Policy.(type) {
	case routePolicy:
		return predictSteps(p.Location, configurationSnippet.Annotation)
	case hostPolicy:
		return predictSteps(p.server, serverSnippet.Annotation)
	}
	return prediction.Answer{}
}

// predictSteps simulates a return that is always reached, if its text has no variables.
func predictSteps(p program.Program, annotation string) prediction.Answer {
	if len(p.Locations) == 0 && len(p.Steps) > 0 && p.Steps[0].Return != 0 {
		step := p.Steps[0]
		location, plain := "", true
		for _, piece := range step.To {
			location, plain = location+piece.Literal, plain && piece.Variable == ""
		}
		if step.Return < 300 || step.Return >= 400 {
			return prediction.Answer{Status: step.Return, Why: annotation + " returns it"}
		}
		if plain && !strings.HasPrefix(location, "/") {
			return prediction.Answer{Status: step.Return, Location: location, Why: annotation + " returns it"}
		}
	}
	var does []string
	for _, status := range returned(p) {
		does = append(does, fmt.Sprint(status))
	}
	if rewrites(p) {
		does = append(does, "another path")
	}
	if len(does) == 0 {
		return prediction.Answer{}
	}
	return prediction.Answer{Why: fmt.Sprintf("%s, if a step of the snippet says so (%s)", strings.Join(does, " or "), annotation)}
}

// returned are the statuses that a program may answer with, in order.
func returned(p program.Program) []int {
	var statuses []int
	var walk func([]program.Step)
	walk = func(steps []program.Step) {
		for _, s := range steps {
			if flag := map[string]int{"redirect": 302, "permanent": 301}[s.Flag]; cmp.Or(s.Return, flag) != 0 {
				statuses = append(statuses, cmp.Or(s.Return, flag))
			}
			walk(s.Then)
		}
	}
	each(p, walk)
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// rewrites reports whether a program may change a path.
func rewrites(p program.Program) bool {
	found := false
	var walk func([]program.Step)
	walk = func(steps []program.Step) {
		for _, s := range steps {
			found = found || s.Rewrite != "" && s.Flag != "redirect" && s.Flag != "permanent"
			walk(s.Then)
		}
	}
	each(p, walk)
	return found
}

// each calls a function with the steps of a program and those of its locations.
func each(p program.Program, walk func([]program.Step)) {
	walk(p.Steps)
	for _, l := range p.Locations {
		each(l.Program, walk)
	}
}

// predictErrorPage says that error pages may answer instead of what is refused.
func predictErrorPage(q prediction.Request) prediction.Answer {
	if p, ok := q.Policy.(effectsPolicy); ok && p.Phases["error_page"] {
		return prediction.Answer{Why: "what error_page says, if the response has one of its statuses (error_page in a snippet)"}
	}
	return prediction.Answer{}
}
