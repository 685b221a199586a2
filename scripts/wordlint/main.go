// Command wordlint reports words that Headgate's code and documentation do
// without, see words.txt.
//
//	wordlint [-count] [-ext md,go,lua] [-skip PATH,…] PATH…
//
// A path is a file, or a directory that is searched for Markdown, Go and Lua.
// The exit status is 1 if there are such words, 2 for a usage error.
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed words.txt
var words string

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("wordlint", flag.ContinueOnError)
	flags.SetOutput(stderr)
	count := flags.Bool("count", false, "print the number of hits by pattern instead of the hits")
	ext := flags.String("ext", "md,go,lua", "extensions of the files to read, separated by commas")
	skip := flags.String("skip", "", "files and directories to leave out, separated by commas")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	list, err := parseRules(words)
	if err != nil {
		fmt.Fprintln(stderr, "words.txt:", err)
		return 2
	}
	paths, err := find(flags.Args(), strings.Split(*ext, ","), strings.Split(*skip, ","))
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	var hits []hit
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
		hits = append(hits, list.check(path, string(text))...)
	}
	if *count {
		printCounts(stdout, hits)
	} else {
		for _, h := range hits {
			fmt.Fprintf(stdout, "%s:%d: %q: write %s\n", h.path, h.line, h.words, h.rule.instead)
		}
	}
	if len(hits) > 0 {
		return 1
	}
	return 0
}

// find lists the files below the paths that have one of the extensions. Hidden
// directories, testdata and built files are left out.
func find(paths, ext, skip []string) ([]string, error) {
	var files []string
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if slices.Contains(skip, path) || entry.IsDir() && path != root && (name[0] == '.' || name == "testdata" || name == "bin") {
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if !entry.IsDir() && slices.Contains(ext, strings.TrimPrefix(filepath.Ext(name), ".")) {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// printCounts prints how often each pattern was found in each kind of file.
func printCounts(w io.Writer, hits []hit) {
	type row struct {
		pattern, instead string
		prose, names     int
	}
	rows := map[*rule]*row{}
	for _, h := range hits {
		r := rows[h.rule]
		if r == nil {
			r = &row{pattern: h.rule.text, instead: h.rule.instead}
			rows[h.rule] = r
		}
		if h.isName {
			r.names++
		} else {
			r.prose++
		}
	}
	var sorted []*row
	for _, r := range rows {
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.prose+b.names, a.prose+a.names), cmp.Compare(a.pattern, b.pattern))
	})
	fmt.Fprintf(w, "%6s %6s\n", "prose", "names")
	for _, r := range sorted {
		fmt.Fprintf(w, "%6d %6d  %s (%s)\n", r.prose, r.names, r.pattern, r.instead)
	}
}
