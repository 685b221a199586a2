package dbg

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

// uses counts what uses a profile.
type uses struct{ hosts, routes int }

// listProfiles lists the profiles of all routes, the most used first, with the directives of
// nginx.conf that the default profile does not have.
func (r running) listProfiles(ctx context.Context, out *bytes.Buffer, _ string) error {
	counts := map[string]uses{}
	err := r.each(ctx, unit.Host, func(name string, u dataplane.Unit) error {
		var h unit.PackedHost
		if err := json.Unmarshal(u.Payload, &h); err != nil {
			return fmt.Errorf("decode host %s: %w", name, err)
		}
		routes := map[string]int{}
		for _, route := range h.Routes {
			if location, ok := at(h.Locations, route.Location); ok {
				routes[profile(location)]++
			}
		}
		for p, n := range routes {
			counts[p] = uses{counts[p].hosts + 1, counts[p].routes + n}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var conf bytes.Buffer
	if err := r.printConf(ctx, &conf, ""); err != nil {
		return err
	}
	settings := locations(conf.String())
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "PROFILE\tHOSTS\tROUTES\tDIFFERS FROM THE DEFAULT")
	for _, p := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b].routes, counts[a].routes), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", p, counts[p].hosts, counts[p].routes, difference(settings, p))
	}
	return table.Flush()
}

var profileName = regexp.MustCompile(`^p_[0-9a-f]+`)

// profile is the profile of a location.
func profile(location string) string { return cmp.Or(profileName.FindString(location), location) }

// difference is the directives of a profile's location that the default one does not have.
func difference(settings map[string][]string, profile string) string {
	own, ok := settings["@"+profile]
	if !ok {
		return "not in nginx.conf"
	}
	var more []string
	for _, directive := range own {
		if !slices.Contains(settings["/"], directive) {
			more = append(more, directive)
		}
	}
	return cmp.Or(strings.Join(more, " "), "-")
}

var locationStart = regexp.MustCompile(`^\s*location (@p_[0-9a-f]+|/)(?:_\w+)? \{$`)

// locations are the directives of the locations of profiles in nginx.conf, as Headgate writes
// it, and those of the default one under "/". A profile has one or several, with what runs Lua in
// some of them: the first one counts, without Lua.
func locations(conf string) map[string][]string {
	all := map[string][]string{}
	name := ""
	for line := range strings.Lines(conf) {
		line = strings.TrimSuffix(line, "\n")
		if start := locationStart.FindStringSubmatch(line); start != nil {
			name = start[1]
			if _, twice := all[name]; twice {
				name = ""
			} else {
				all[name] = nil
			}
			continue
		}
		switch text := strings.TrimSpace(line); {
		case text == "}":
			name = ""
		case name != "" && strings.HasSuffix(text, ";") && !strings.Contains(text, "_by_lua"):
			all[name] = append(all[name], text)
		}
	}
	return all
}
