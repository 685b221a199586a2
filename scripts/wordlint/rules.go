package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A rule is a line of words.txt.
type rule struct {
	prose, name bool
	text        string
	pattern     *regexp.Regexp
	instead     string
}

// rules are all of words.txt.
type rules struct {
	words []*rule
	allow []*regexp.Regexp
	// named has the rules against a name. Most names stand in many places.
	named map[string][]*rule
}

// A hit is words that a rule keeps out.
type hit struct {
	path   string
	line   int
	words  string
	isName bool
	rule   *rule
}

func parseRules(text string) (rules, error) {
	list := rules{named: map[string][]*rule{}}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 3 {
			return rules{}, fmt.Errorf("line %d: must have three columns, separated by tabs", i+1)
		}
		where, pattern, instead := columns[0], columns[1], columns[2]
		expression := `(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)`
		if where != "allow" {
			expression = `\b` + expression + `\b`
		}
		compiled, err := regexp.Compile(`(?i)` + expression)
		if err != nil {
			return rules{}, fmt.Errorf("line %d: %w", i+1, err)
		}
		switch where {
		case "any", "prose", "name":
			list.words = append(list.words, &rule{where != "name", where != "prose", pattern, compiled, instead})
		case "allow":
			list.allow = append(list.allow, compiled)
		default:
			return rules{}, fmt.Errorf("line %d: %q must be any, prose, name or allow", i+1, where)
		}
	}
	return list, nil
}

// check reports the hits in one file, by line.
func (list rules) check(path, text string) []hit {
	prose, names := parts(path, text)
	for _, allowed := range list.allow {
		prose = allowed.ReplaceAllStringFunc(prose, func(match string) string { return strings.Repeat("\x00", len(match)) })
	}
	var hits []hit
	add := func(at int, words string, isName bool, r *rule) {
		line := strings.Count(text[:at], "\n") + 1
		hits = append(hits, hit{path, line, strings.Join(strings.Fields(words), " "), isName, r})
	}
	for _, r := range list.words {
		if r.prose {
			for _, at := range r.pattern.FindAllStringIndex(prose, -1) {
				add(at[0], prose[at[0]:at[1]], false, r)
			}
		}
	}
	for _, n := range append(names, namesIn(prose)...) {
		for _, r := range list.against(n.text) {
			add(n.at, n.text, true, r)
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.line, b.line) })
	return hits
}

// against are the rules that keep a name out.
func (list rules) against(name string) []*rule {
	found, known := list.named[name]
	if known {
		return found
	}
	split := splitName(name)
	if !slices.ContainsFunc(list.allow, func(a *regexp.Regexp) bool { return a.MatchString(name) || a.MatchString(split) }) {
		for _, r := range list.words {
			if r.name && r.matchesName(split) {
				found = append(found, r)
			}
		}
	}
	list.named[name] = found
	return found
}

// matchesName reports whether a name has the words. Where a rule is for names
// alone, it is about the whole name.
func (r *rule) matchesName(split string) bool {
	found := r.pattern.FindStringIndex(split)
	return found != nil && (r.prose || found[0] == 0 && found[1] == len(split))
}
