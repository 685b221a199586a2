package docgen

import (
	"fmt"
	"strings"
)

// A State is what Headgate does with a name of ingress-nginx: a setting, a flag, a
// command or a metric.
type State string

// The states.
const (
	Done    State = "done"
	Differs State = "differs"
	Refused State = "refused"
)

// A Name is one of ingress-nginx.
type Name struct {
	Name  string
	State State
	// Where has links to what describes it, or the reason if it is refused.
	Where string
}

// A NameList is a table of names of one kind.
type NameList struct {
	Title string
	Names []Name
}

const coverageHead = `# Coverage of ingress-nginx

<!-- Written by ` + "`go test ./internal/docs/docgen -update`" + ` from what the features, the programs and the metrics declare. -->

Every annotation, ConfigMap key, flag, command and metric of ingress-nginx, with what Headgate does with it:

* **done**: as in ingress-nginx, apart from what [differences.md](differences.md) says of its subject as a whole.
* **differs**: it is there, and the linked sections of differences.md name it.
* **refused**: it has no effect, for the reason in the last column. Settings have a finding with this reason, flags a line in the log.

`

// Coverage is docs/coverage.md.
func Coverage(lists []NameList) string {
	var b strings.Builder
	b.WriteString(coverageHead)
	states := []State{Done, Differs, Refused}
	columns := []string{"", "names"}
	for _, s := range states {
		columns = append(columns, string(s))
	}
	table(&b, columns...)
	for _, l := range lists {
		cells := []string{fmt.Sprintf("[%s](#%s)", l.Title, anchor(l.Title)), fmt.Sprint(len(l.Names))}
		for _, s := range states {
			cells = append(cells, fmt.Sprint(l.count(s)))
		}
		row(&b, cells...)
	}
	for _, l := range lists {
		fmt.Fprintf(&b, "\n## %s\n\n", l.Title)
		table(&b, "Name", "State", "Where, or why")
		for _, n := range l.Names {
			row(&b, code(n.Name), string(n.State), n.Where)
		}
	}
	return b.String()
}

func (l NameList) count(s State) int {
	n := 0
	for _, name := range l.Names {
		if name.State == s {
			n++
		}
	}
	return n
}

// anchor is the name of a heading in links.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case strings.ContainsRune("`.,:()", r):
			return -1
		}
		return r
	}, strings.ToLower(heading))
}
