package docgen

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature/all"
)

const coveragePage = "../../../docs/coverage.md"

// TestCoverage compares docs/coverage.md with what is declared: each name of the tables of
// ingress-nginx has a row, and done is only what a declaration has.
func TestCoverage(t *testing.T) {
	k, at := kinds(), differences(t)
	lists := []NameList{
		{"Annotations", slices.Concat(k[0].coverage(t, at), annotationsOfOthers(t))},
		{"ConfigMap keys", k[1].coverage(t, at)},
		{"Flags and environment variables", flagsCoverage(t, at)},
		{"Other programs", programsCoverage(t, at)},
		{"Metrics", metricsCoverage(t, at)},
	}
	for i, least := range []int{156, 240, 95, 120, 40} {
		if l := lists[i]; len(l.Names) < least {
			t.Errorf("%s: %d names", l.Title, len(l.Names))
		}
		for _, n := range lists[i].Names {
			if n.State == "" || n.Where == "" {
				t.Errorf("%s %s is neither declared nor refused", lists[i].Title, n.Name)
			}
		}
	}
	text := Coverage(lists)
	if *update {
		write(t, coveragePage, text)
	}
	if read(t, coveragePage) != text {
		t.Errorf("%s is not what is declared (go test ./internal/docs/docgen -update writes it)", coveragePage)
	}
}

// coverage is what becomes of each setting of the table of ingress-nginx.
func (k kind) coverage(t *testing.T, at map[string][]string) []Name {
	t.Helper()
	declared, section := k.declared(t, all.Features()), map[string]string{}
	for _, s := range append(sections(all.Features()), tenancy()) {
		for _, d := range s.settings {
			if name := k.of(d.Spec()); name != "" {
				section[name] = s.name
			}
		}
	}
	reasons := map[string]string{}
	for _, r := range k.refused {
		for _, name := range r.Names {
			reasons[name] = r.Reason
		}
	}
	var names []Name
	for _, name := range slices.Sorted(maps.Keys(k.knownSettings(t))) {
		n := Name{Name: name}
		switch d := declared[name]; {
		case d != nil:
			n = present(name, fmt.Sprintf("[%s](%s#%s)", section[name], strings.TrimPrefix(k.page, "../../../docs/"), anchor(section[name])), at)
			if reason := noEffect.FindStringSubmatch(d.Spec().Doc); reason != nil {
				n.State, n.Where = Refused, reason[1]
			}
		case reasons[name] != "":
			n.State, n.Where = Refused, reasons[name]
		}
		names = append(names, n)
	}
	return names
}

// noEffect finds the reason in the description of a setting that is accepted without effect.
var noEffect = regexp.MustCompile(`(?:^|\. )Has no effect[^:.]*: (.*)\.$`)

// present is a name that is declared: it differs if docs/differences.md names it.
func present(name, where string, at map[string][]string) Name {
	links := map[string]bool{}
	for word, of := range at {
		prefix, any := strings.CutSuffix(word, "*")
		suffix, short := strings.CutPrefix(word, "…")
		if word == name ||
			any && strings.HasSuffix(prefix, "-") && strings.HasPrefix(name, prefix) ||
			short && strings.HasPrefix(suffix, "_") && strings.HasSuffix(name, suffix) {
			for _, link := range of {
				links[link] = true
			}
		}
	}
	if len(links) > 0 {
		return Name{name, Differs, strings.Join(slices.Sorted(maps.Keys(links)), ", ")}
	}
	return Name{name, Done, where}
}

// annotationsOfOthers are annotations that don't have the prefix: a flag reads each.
func annotationsOfOthers(t *testing.T) []Name {
	flags := tables(t, "../../../docs/flags.md")["Flags"]
	var names []Name
	for name, flag := range map[string]string{"kubernetes.io/ingress.class": "--ingress-class", "service.kubernetes.io/topology-mode": "--enable-topology-aware-routing"} {
		n := Name{Name: name}
		if flags[flag] != nil {
			n.State, n.Where = Done, fmt.Sprintf("[%s](flags.md)", code(flag))
		}
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b Name) int { return cmp.Compare(a.Name, b.Name) })
	return names
}

// differences are the sections of docs/differences.md that name something, as links, by its
// name, in which a * at the end or a … at the start stands for anything.
func differences(t *testing.T) map[string][]string {
	t.Helper()
	at, quoted := map[string][]string{}, regexp.MustCompile("`([^`]+)`")
	title := ""
	for line := range strings.Lines(read(t, "../../../docs/differences.md")) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			title = strings.TrimSpace(heading)
		}
		cells := strings.SplitN(line, " | ", 3)
		if title == "" || !strings.HasPrefix(line, "| ") || len(cells) < 3 {
			continue
		}
		link := fmt.Sprintf("[%s](differences.md#%s)", title, anchor(title))
		for _, q := range quoted.FindAllStringSubmatch(cells[0]+" "+cells[1], -1) {
			for word := range strings.FieldsFuncSeq(q[1], func(r rune) bool { return strings.ContainsRune(" =:", r) }) {
				at[word] = append(at[word], link)
			}
		}
	}
	return at
}

// tables reads a generated page: by heading, and by the name in the first cell of a row, its
// further cells.
func tables(t *testing.T, page string) map[string]map[string][]string {
	t.Helper()
	rows, title := map[string]map[string][]string{}, ""
	quoted := regexp.MustCompile("`([^` ]+)[^`]*`")
	for line := range strings.Lines(read(t, page)) {
		if strings.HasPrefix(line, "#") {
			title = strings.TrimSpace(strings.TrimLeft(line, "#"))
			rows[title] = map[string][]string{}
		}
		if !strings.HasPrefix(line, "| ") || title == "" {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		for _, q := range quoted.FindAllStringSubmatch(cells[0], -1) {
			rows[title][q[1]] = cells[1:]
		}
	}
	return rows
}

// rowsOf are the lines of a table of ingress-nginx's names, without its head.
func rowsOf(t *testing.T, file string) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(read(t, "../../../test/compat/"+file)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSpace(line), "\t"))
		}
	}
	return rows[1:]
}
