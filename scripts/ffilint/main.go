// Command ffilint has all that Lua touches outside of LuaJIT on one list: functions, variables and structures that it
// declares or calls through FFI, with who guarantees that they stay what they are.
//
//	ffilint [ROOT]
//
// The list is the table of docs/decisions/0073-ffi.md: the names in its first column. It reports what Lua touches and the
// list lacks, and what the list has and Lua touches no more. The exit status is 1 if there is something to report.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// list is the file with the table.
const list = "docs/decisions/0073-ffi.md"

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	complaints, err := lint(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ffilint:", err)
		os.Exit(2)
	}
	for _, c := range complaints {
		fmt.Println(c)
	}
	if len(complaints) > 0 {
		os.Exit(1)
	}
}

// lint returns what differs between the list and the Lua code below root, sorted.
func lint(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	listed := names(string(text))
	touched := map[string]bool{}
	var complaints []string
	for _, folder := range []string{"lua", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !mayHaveLua(path) {
				return err
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := filepath.Rel(root, path)
			for _, problem := range look(string(code), listed, touched) {
				complaints = append(complaints, file+": "+problem)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read Lua code: %w", err)
		}
	}
	for name := range listed {
		if !touched[name] {
			complaints = append(complaints, fmt.Sprintf("%s: Lua touches %s no more: remove it", list, name))
		}
	}
	slices.Sort(complaints)
	return complaints, nil
}

// mayHaveLua reports whether a file is read. Lua also stands in texts of Go and in templates.
func mayHaveLua(path string) bool {
	return slices.Contains([]string{".lua", ".go", ".tmpl"}, filepath.Ext(path)) &&
		!strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "/testdata/") && !strings.Contains(path, "/test/")
}

// names are those in the first column of the table.
func names(text string) map[string]bool {
	listed := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[1:], "|")
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			listed[name[1]] = true
		}
	}
	return listed
}

// look notes what a file touches, and returns what is wrong with it.
func look(code string, listed, touched map[string]bool) (problems []string) {
	complain := func(problem string) {
		if !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	note := func(name string) {
		if touched[name] = true; !listed[name] {
			complain(fmt.Sprintf("touches %s, which is not on the list of %s", name, list))
		}
	}
	block := regexp.MustCompile(`(?s)\bcdef\s*\(?\s*(?:\[\[(.*?)\]\]|"([^"\n]*)")`)
	blocks := block.FindAllStringSubmatch(code, -1)
	if all := regexp.MustCompile(`\bcdef\b`).FindAllString(code, -1); len(all) != len(blocks) {
		complain("has a cdef that is not of the form cdef [[ ... ]]: it can't be read")
	}
	for _, found := range blocks {
		for _, name := range declared(found[1] + found[2]) {
			note(name)
		}
	}
	code = block.ReplaceAllString(code, "")
	if !regexp.MustCompile(`\bffi\b`).MatchString(code) {
		return problems
	}
	if regexp.MustCompile(`["'](?:const )?(?:struct|union)\s*\{`).MatchString(code) {
		complain("has a structure without a name: declare it")
	}
	for _, name := range regexp.MustCompile(`\b(\w+)\s*=\s*(?:ffi|require\s*\(?["']ffi["']\)?)\.C\b(?:[^.]|$)`).FindAllStringSubmatch(code, -1) {
		if name[1] != "C" {
			complain(fmt.Sprintf("has another name for ffi.C, %s: its calls can't be read", name[1]))
		}
	}
	if regexp.MustCompile(`\bC\[`).MatchString(code) {
		complain("looks names up in ffi.C: its calls can't be read")
	}
	// lua-resty-core declares functions and types of the Lua module.
	for _, name := range regexp.MustCompile(`\bC\.([A-Za-z_]\w*)|["'](?:const )?(ngx_\w+_t)\b`).FindAllStringSubmatch(code, -1) {
		note(name[1] + name[2])
	}
	return problems
}

// declared are the functions, variables and structures of C declarations. Members of structures and names of parameters
// are none.
func declared(block string) (found []string) {
	structure, inner, word := regexp.MustCompile(`(?s)struct\s+(\w+)\s*\{.*?\}[^;]*;`), regexp.MustCompile(`\([^()]*\)`), regexp.MustCompile(`\w+`)
	block = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(block, "")
	for _, s := range structure.FindAllStringSubmatch(block, -1) {
		found = append(found, "struct "+s[1])
	}
	block = structure.ReplaceAllString(block, "")
	// Parameters may be functions, whose parameters are in brackets as well.
	for inner.MatchString(block) {
		block = inner.ReplaceAllString(block, "")
	}
	for declaration := range strings.SplitSeq(block, ";") {
		for one := range strings.SplitSeq(declaration, ",") {
			if words := word.FindAllString(one, -1); words != nil {
				found = append(found, words[len(words)-1])
			}
		}
	}
	return found
}
