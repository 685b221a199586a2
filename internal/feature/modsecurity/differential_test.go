package modsecurity

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pieces are what could end an argument, and what must never stand outside one.
func pieces(folder string) []string {
	return append(strings.Split("a|0|\"|\\\"|\\|\\\\|%|%%|%{|%{TX.a}|\\%{TX.a}|%{ENV.PATH}|'|,| |\t|#|:|=|!|@|&|{|}|(a)|;|/|-|.|+|é", "|"),
		"|", "\\\n", "\n", "exec:/nowhere", ",exec:/nowhere,", "Include /nowhere", " Include /nowhere #", ",initcol:ip=a", ",pass",
		"SecDebugLog "+folder+"/made", " SecDebugLog "+folder+"/made #", "\" \"id:77\"\nSecDebugLog "+folder+"/made")
}

// samples are arguments that ModSecurity takes, by the name of the directive or action.
var samples = map[string]string{
	"SecMarker": "END", "SecRuleEngine": "On", "SecRuleRemoveById": "500-900", "SecRuleRemoveByTag": "attack-x", "SecRuleRemoveByMsg": `"SQL (a)"`,
	"SecRuleUpdateTargetById": `5 "!ARGS:x,!ARGS:y"`, "SecRuleUpdateTargetByTag": `attack-x "!ARGS:x"`, "SecRuleUpdateTargetByMsg": `"SQL (a)" "!ARGS:x"`,
	"SecRequestBodyLimit": "1000", "SecResponseBodyMimeType": "text/plain text/html", "SecArgumentSeparator": "&", "SecCookieFormat": "0",
	"SecAuditLogParts": "AHZ", "SecAuditLogRelevantStatus": `"^(?:5|4(?!04))"`, "SecAuditLog": "/dev/null", "SecPcreMatchLimit": "500",

	"phase": "2", "msg": "a b", "logdata": "a b", "tag": "attack-a/b", "severity": "CRITICAL", "t": "lowercase", "status": "403", "redirect": "https://a.test/b",
	"skip": "1", "skipAfter": "END", "setvar": "tx.a=1", "ctl": "ruleRemoveTargetById=5;ARGS:x",
}

// A generator makes texts that tenants might write.
type generator struct {
	*rand.Rand
	pieces []string
}

// changed puts pieces into a text.
func (g generator) changed(text string) string {
	for range g.IntN(3) {
		at := g.IntN(len(text) + 1)
		text = text[:at] + g.pieces[g.IntN(len(g.pieces))] + text[at:]
	}
	return text
}

// comparing are the operators that take any argument, or none.
var comparing = slices.DeleteFunc(slices.Concat(withArgument, withoutArgument), func(name string) bool {
	return name == "ipMatch" || name == "validateByteRange"
})

func one[T any](g generator, list []T) T { return list[g.IntN(len(list))] }

func (g generator) action(names []string) string {
	name := one(g, names)
	value := g.changed(samples[name])
	if g.IntN(2) == 0 {
		value = "'" + value + "'"
	}
	return name + ":" + value
}

// text has directives, and then an action that must still refuse the request.
func (g generator) text(directives, names []string) string {
	var b strings.Builder
	b.WriteString("SecRuleEngine On\n")
	for i := range 1 + g.IntN(2) {
		switch g.IntN(3) {
		case 0:
			name := one(g, directives)
			fmt.Fprintf(&b, "%s %s\n", name, g.changed(samples[name]))
		case 1:
			fmt.Fprintf(&b, "SecRule %s \"@%s %s\" \"id:%d,phase:2,pass\"\n", g.changed("ARGS:a|!REQUEST_HEADERS:/^b/|&TX"), one(g, comparing), g.changed(one(g, []string{"", "1", "1", "1"})), i+1)
		default:
			fmt.Fprintf(&b, "SecRule ARGS:a \"%s%s\" \"id:%d,phase:2,pass,%s\"\n", one(g, []string{"", "@", "!@rx ", " @pm "}), g.changed("a"), i+1, g.action(names))
		}
	}
	fmt.Fprintf(&b, "SecAction \"id:99999,phase:1,%s,deny,status:418\"\n", g.action([]string{"msg", "logdata", "tag", "severity", "t", "setvar", "skipAfter"}))
	return b.String()
}

// TestModSecurityReadsTheSame: ModSecurity finds as many rules in what parseRules writes, none of
// them lost its actions, and nothing in it became a directive or an action.
func TestModSecurityReadsTheSame(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program := filepath.Join(t.TempDir(), "read")
	if out, err := exec.CommandContext(t.Context(), "cc", "-o", program, "testdata/read.c", "-lmodsecurity").CombinedOutput(); err != nil {
		t.Fatalf("the program with ModSecurity: %v\n%s", err, out)
	}
	g := generator{rand.New(rand.NewPCG(1, 2)), pieces(folder)} //nolint:gosec // The same texts each time.
	var directives, names []string
	for _, d := range allowed() {
		if samples[d.name] != "" {
			directives = append(directives, d.name)
		}
	}
	for name := range actionForms {
		if samples[name] != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var texts []string
	const number = 5000
	for len(texts) < number {
		if r, err := parseRules(g.text(directives, names)); err == nil {
			texts = append(texts, bounds+r.text)
		}
	}
	run := exec.CommandContext(t.Context(), program)
	run.Stdin, run.Dir = strings.NewReader(strings.Join(texts, "\x00")), folder
	var out bytes.Buffer
	run.Stdout = &out
	if err := run.Run(); err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(answers) != len(texts) {
		t.Fatalf("%d answers about %d texts", len(answers), len(texts))
	}
	for i, text := range texts {
		if want := fmt.Sprintf("%d 418", rulesIn(text)); answers[i] != want {
			t.Errorf("%s, want %s:\n%s", answers[i], want, text)
		}
	}
	if made, err := os.ReadDir(folder); err != nil || len(made) > 0 {
		t.Errorf("files were made: %v, %v", made, err)
	}
}

// rulesIn counts rules as ModSecurity does: a marker is in each of the phases.
func rulesIn(text string) (count int) {
	for part := range strings.Lines(text) {
		switch name, _, _ := strings.Cut(part, " "); name {
		case "SecRule", "SecAction":
			count++
		case "SecMarker":
			count += 7
		}
	}
	return count
}
