package snippet

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A surveyed is a directive in a context, with a shape of its arguments, of a survey of
// snippets in public repositories (test/compat/snippets.tsv).
type surveyed struct {
	directive, context, shape, class string
	count                            int
}

// readSurvey reads what tenants' snippets have.
func readSurvey(t *testing.T) []surveyed {
	t.Helper()
	text, err := os.ReadFile("../../../test/compat/snippets.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var list []surveyed
	shape := regexp.MustCompile(`^(.*) ×(\d+)$`)
	for line := range strings.Lines(string(text)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if row[0] == "directive" {
			continue
		}
		if strings.HasPrefix(row[7], "-") {
			continue
		}
		for text := range strings.SplitSeq(row[5], "; ") {
			found := shape.FindStringSubmatch(text)
			if found == nil {
				t.Fatalf("%s: the shape %q has no number", row[0], text)
			}
			n, err := strconv.Atoi(found[2])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, surveyed{row[0], row[1], found[1], row[7], n})
		}
	}
	return list
}

// survey is the section of docs/snippets.md about how much of what people write is taken.
func survey(t *testing.T) string {
	t.Helper()
	all, taken := map[string]int{}, map[string]int{}
	sum, sumTaken := 0, 0
	var refused []string
	for _, s := range readSurvey(t) {
		all[s.directive] += s.count
		sum += s.count
		text, place := s.text()
		if len(Parse(text, place, Options{}).Refusals) == 0 {
			taken[s.directive] += s.count
			sumTaken += s.count
		} else {
			refused = append(refused, fmt.Sprintf("| `%s` | %s | %s | %d |", s.directive, s.context, s.shape, s.count))
		}
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[b]-all[a], strings.Compare(a, b)) })
	var whole, none []string
	for _, name := range names {
		switch entry := fmt.Sprintf("`%s` %d", name, all[name]); taken[name] {
		case all[name]:
			whole = append(whole, entry)
		case 0:
			none = append(none, entry)
		default:
			whole = append(whole, fmt.Sprintf("%s of %d", fmt.Sprintf("`%s` %d", name, taken[name]), all[name]))
		}
	}
	slices.Sort(refused)
	return fmt.Sprintf("Of %d directives in the snippets of the survey, %d (%.1f %%) are taken:\n%s.\n\nNot taken are %s.\n\n"+
		"| directive | in | shape | occurrences |\n| --- | --- | --- | --- |\n%s\n", sum, sumTaken, 100*float64(sumTaken)/float64(sum),
		strings.Join(whole, ", "), strings.Join(none, ", "), strings.Join(refused, "\n"))
}

const surveyBegin, surveyEnd = "<!-- survey: go test ./internal/syntax/snippet -update -->\n", "<!-- end of survey -->\n"

// TestSurvey compares the section of the documentation with what Parse takes.
func TestSurvey(t *testing.T) {
	const page = "../../../docs/snippets.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), surveyBegin)
	section, behind, ends := strings.Cut(rest, surveyEnd)
	if !ok || !ends {
		t.Fatalf("%s has no %q", page, surveyBegin)
	}
	want := survey(t)
	if *update {
		if err := os.WriteFile(page, []byte(before+surveyBegin+want+surveyEnd+behind), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if section != want {
		t.Errorf("%s is old: run go test ./internal/syntax/snippet -update\n%s", page, want)
	}
}

// arguments are examples of what a shape says.
func (s surveyed) arguments() string {
	switch s.directive {
	case "limit_req_status", "limit_conn_status":
		return "429"
	case "limit_req_log_level", "limit_conn_log_level":
		return "warn"
	case "proxy_http_version":
		return "1.1"
	case "proxy_ignore_headers":
		return "Cache-Control"
	case "proxy_cookie_flags":
		return "one secure samesite=lax"
	case "limit_except":
		return "GET"
	}
	arguments := " " + s.shape + " "
	for _, pair := range [][2]string{
		{"(none)", ""}, {"none", "x"}, {`"NAME: VALUE"`, `"X-A: b"`}, {`"NAME: VALUE+VAR"`, `"X-A: b$host"`}, {`"NAME VALUE" (no colon)`, `"X-A b"`}, {`"NAME"`, "X-A"}, {`"NAME: "`, `"X-A: "`},
		{"VAR $upstream_http_…", "$v $upstream_http_x_user"}, {"VAR $upstream_cookie_…", "$v $upstream_cookie_a"},
		{"(VAR = LITERAL)", "($host = a) { }"}, {"(VAR != LITERAL)", "($host != a) { }"}, {`(VAR = "")`, `($http_a = "") { }`}, {`(VAR != "")`, `($http_a != "") { }`},
		{"(VAR ~* REGEX+capture)", "($host ~* ^(a)) { }"}, {"(VAR ~ REGEX+capture)", "($host ~ ^(a)) { }"}, {"(VAR ~* REGEX)", "($host ~* ^a) { }"}, {"(VAR ~ REGEX)", "($host ~ ^a) { }"},
		{"(VAR !~ REGEX)", "($host !~ ^a) { }"}, {"(VAR !~* REGEX)", "($host !~* ^a) { }"},
		{"CODE…", "500"}, {"=CODE", "=404"}, {"CODE", "404"}, {"@NAME", "@named"}, {"NAME…", "X-B"}, {"WORD…", "a/b"}, {"TEXT…", "error timeout"}, {"N…", "200"},
		{"zone=…", "zone=z"}, {"burst=…", "burst=5"}, {"delay=…", "delay=3"},
		{"URL+VAR", "https://e.test/$host"}, {"PATH+VAR", "/a/b/$host"}, {"TEXT+VAR", "a$host"}, {" URL ", " https://e.test/ "}, {" PATH ", " /o/x/x/x/x/x/x "}, {" PATH ", " /other/b "},
		{" REGEX ", ` ^/a(.*)\.php `}, {" BODY ", " 'some text' "}, {" CIDR ", " 10.0.0.0/8 "}, {" IP ", " 10.0.0.1 "}, {" SIZE ", " 16k "}, {" TIME ", " 30s "}, {" LUA ", " { return } "},
		{" NAME ", " X-A "}, {" TEXT ", " text "}, {" TEXT ", " text "}, {" VAR ", " $host "}, {" VAR ", " $host "}, {" N ", " 5 "}, {" N ", " 5 "},
	} {
		arguments = strings.ReplaceAll(arguments, pair[0], pair[1])
	}
	return strings.TrimSpace(arguments)
}

// text is an example of the directive in its context.
func (s surveyed) text() (string, Place) {
	arguments := s.arguments()
	text := s.directive + " " + arguments + ";"
	switch s.directive {
	case "set", "auth_request_set":
		text = strings.Replace(text, "$host", "$v", 1)
	case "if":
		text = s.directive + " " + arguments
	case "location", "limit_except":
		text = s.directive + " " + arguments + " { deny all; }"
	}
	if strings.HasSuffix(s.directive, "_by_lua_block") {
		text = s.directive + " " + arguments
	}
	place := InLocation
	blocks := strings.Split(s.context, " in ")
	switch top := blocks[len(blocks)-1]; top {
	case "server":
		place = InServer
	case "auth location":
		place = InAuth
	}
	for i, block := range blocks[:len(blocks)-1] {
		switch block {
		case "if":
			text = "if ($host = a) { " + text + " }"
		case "location":
			text = "location /o" + strings.Repeat("/x", len(blocks)-i) + " { " + text + " }"
		case "limit_except":
			text = "limit_except GET { " + text + " }"
		default:
			text = block + " { " + text + " }"
		}
	}
	return text, place
}
