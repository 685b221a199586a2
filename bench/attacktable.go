package main

import (
	"fmt"
	"slices"
	"strings"
)

// attackHeading begins a table in Markdown: for one build, or for the one before too.
func attackHeading(builds int) string {
	names := []string{"before", "now"}[2-builds:]
	heading := "| finding | attack |"
	for _, name := range names {
		heading += fmt.Sprintf(" p50 / p99 %s, ms | changes, ms | memory, MiB |", name)
	}
	heading += " verdict |\n|" + strings.Repeat(" --- |", strings.Count(heading, "|"))
	return heading
}

// attackRow has each figure as at rest → under attack.
func attackRow(one attack, outcomes []outcome) string {
	row := fmt.Sprintf("| %s | %s |", one.finding, one.about)
	for _, o := range outcomes {
		at, rest := o.attacked, o.idle
		changes := "–"
		if at.Changes > 0 {
			changes = fmt.Sprintf("%.1f → %.1f", rest.Change, at.Change)
		}
		row += fmt.Sprintf(" %.2f / %.1f → %.2f / %.1f | %s | %.0f → %.0f |", rest.P50, rest.P99, at.P50, at.P99, changes, float64(rest.Memory)/(1<<20), float64(at.Memory)/(1<<20))
	}
	last := outcomes[len(outcomes)-1]
	verdict := "held"
	if len(last.faults) > 0 {
		verdict = "**" + strings.Join(last.faults, "; ") + "**"
	}
	if len(outcomes) > 1 && len(outcomes[0].faults) > 0 {
		verdict += "; before: " + strings.Join(outcomes[0].faults, "; ")
	}
	if counts := last.answers; len(counts) > 0 {
		var statuses []string
		for status, n := range counts {
			statuses = append(statuses, fmt.Sprintf("%d: %d", status, n))
		}
		slices.Sort(statuses)
		verdict += " (the attacker's answers: " + strings.Join(statuses, ", ") + ")"
	}
	return row + " " + verdict + " |"
}
