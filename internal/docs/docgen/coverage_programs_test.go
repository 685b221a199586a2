package docgen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// flagsCoverage is what becomes of the controller's flags and variables, by docs/flags.md,
// which is what the program declares.
func flagsCoverage(t *testing.T, at map[string][]string) []Name {
	page := tables(t, "../../../docs/flags.md")
	var names []Name
	for _, cells := range rowsOf(t, "flags.tsv") {
		// "--help, -h" and "--v (short -v)"
		name, _, _ := strings.Cut(strings.ReplaceAll(cells[2], ",", " "), " ")
		n := Name{Name: name}
		idle, removed := page["Flags without effect"][name], page["Flags that ingress-nginx removed"][name]
		switch {
		case page["Flags"][name] != nil:
			n = present(name, "[flags](flags.md)", at)
		case page["Environment variables"][name] != nil:
			n = present(name, "[variables](flags.md#environment-variables)", at)
		case idle != nil:
			n.State, n.Where = Refused, idle[0]
		case removed != nil:
			n.State, n.Where = Refused, "ingress-nginx removed it: "+removed[0]
		}
		names = append(names, n)
	}
	return names
}

// programsCoverage is what becomes of the commands beside the controller and of their flags, by the
// pages that their programs write.
func programsCoverage(t *testing.T, at map[string][]string) []Name {
	pages := map[string]map[string]map[string][]string{"cli.md": tables(t, "../../../docs/cli.md"), "kubectl-plugin.md": tables(t, "../../../docs/kubectl-plugin.md")}
	var names []Name
	for _, cells := range rowsOf(t, "programs.tsv") {
		program, command, flag := cells[0], cells[1], cells[2]
		n := Name{Name: strings.Join(slices.DeleteFunc(slices.Clone(cells), func(cell string) bool { return cell == "-" }), " ")}
		page, section := "cli.md", "headgate "+program
		if program == "kubectl-ingress_nginx" {
			page, section = "kubectl-plugin.md", "kubectl headgate"
		}
		if command != "-" {
			section += " " + canonical(command)
		}
		found := pages[page][section]
		cell, has := found[flag]
		switch where := fmt.Sprintf("[%s](%s#%s)", section, page, anchor(section)); {
		case program == "dataplane":
			n.State, n.Where = Refused, "ingress-nginx never had it in its image; `headgate` runs NGINX itself"
		case found == nil:
		case flag == "-":
			n.State, n.Where = Done, where
		case has:
			n.State, n.Where = Done, where
			if page == "cli.md" {
				p := present(flag, where, at)
				n.State, n.Where = p.State, p.Where
			}
			if _, reason, idle := strings.Cut(cell[len(cell)-1], "without effect: "); idle {
				n.State, n.Where = Refused, reason
			}
		}
		names = append(names, n)
	}
	return names
}

// canonical is the command that has another name.
func canonical(command string) string {
	switch command {
	case "ingress", "ing":
		return "ingresses"
	}
	return command
}

// metricsCoverage is what becomes of the metrics, by docs/metrics.md, which is what the program
// registers.
func metricsCoverage(t *testing.T, at map[string][]string) []Name {
	page, registered := read(t, "../../../docs/metrics.md"), map[string]string{}
	for title, rows := range tables(t, "../../../docs/metrics.md") {
		for name := range rows {
			registered[name] = title
		}
	}
	var names []Name
	for _, cells := range rowsOf(t, "metrics.tsv") {
		name, _, _ := strings.Cut(cells[0], " ")
		n := Name{Name: name}
		family, _, _ := strings.Cut(name, "_")
		switch title := registered[name]; {
		case strings.HasPrefix(cells[6], "removed"):
			n.State, n.Where = Refused, "ingress-nginx "+cells[6]
		case title != "":
			n = present(name, fmt.Sprintf("[%s](metrics.md#%s)", title, anchor(title)), at)
		case strings.Contains(page, "`"+family+"_*`"):
			n.State, n.Where = Done, "[metrics](metrics.md)"
		}
		names = append(names, n)
	}
	return names
}
