package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// files is where links to files of the repository that are not pages lead to. hugo.yaml has it too.
const files = "https://github.com/headgate/headgate/blob/main/"

// fetches is what makes a browser load something from a style sheet or a script.
var fetches = regexp.MustCompile(`https?://|@import|url\(`)

// check returns what is wrong with the site of the repository in a directory.
func (s *site) check(repository string) ([]string, error) {
	faults, err := s.checkComplete(repository)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		p := s.pages[name]
		if p.lost {
			faults = append(faults, name+": has an HTML tag, which is not shown; write it as code")
		}
		for _, l := range p.links {
			if fault := s.checkLink(repository, name, l); fault != "" {
				faults = append(faults, fmt.Sprintf("%s: link %q: %s", name, l.url, fault))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.texts)) {
		if found := fetches.FindString(s.texts[name]); found != "" {
			faults = append(faults, fmt.Sprintf("%s: has %q; must load nothing", name, found))
		}
	}
	return faults, nil
}

// pathForm is how a text names a file or a folder of the repository. Words in capitals stand for names.
var pathForm = regexp.MustCompile("`((?:bench|cmd|deploy|examples|internal|lua|scripts|test)/[a-zA-Z0-9_./*-]+)`")

var placeholder = regexp.MustCompile(`[A-Z]{3,}`)

// checkPaths finds paths in a Markdown file that the repository does not have.
func checkPaths(repository, file, text string) []string {
	var faults []string
	for _, found := range pathForm.FindAllStringSubmatch(text, -1) {
		if placeholder.MatchString(found[1]) && !strings.HasSuffix(found[1], "README.md") {
			continue
		}
		// A pattern that is not valid matches nothing.
		if matches, _ := filepath.Glob(filepath.Join(repository, filepath.FromSlash(found[1]))); len(matches) == 0 {
			faults = append(faults, fmt.Sprintf("%s: the repository has no %s", file, found[1]))
		}
	}
	return faults
}

// checkComplete finds the Markdown files that are not pages, and paths in them that do not exist.
func (s *site) checkComplete(repository string) ([]string, error) {
	var faults []string
	err := filepath.WalkDir(repository, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, name)
		if err != nil {
			return err
		}
		base := filepath.Base(name)
		switch {
		case !entry.IsDir():
			if filepath.Ext(name) == ".md" && s.pages[pageOf(filepath.ToSlash(relative))] == nil {
				faults = append(faults, relative+": is not on the site; add it to "+config)
			}
			// The change log names what there was.
			if filepath.Ext(name) == ".md" && base != "CHANGELOG.md" {
				text, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				faults = append(faults, checkPaths(repository, relative, string(text))...)
			}
		case base == "testdata", relative == "bin", relative == "scripts/site", strings.HasPrefix(base, ".") && relative != ".":
			return fs.SkipDir
		}
		return nil
	})
	return faults, err
}

// pageOf returns the path of the page of a Markdown file.
func pageOf(file string) string {
	if file == "docs/README.md" {
		return "index.html"
	}
	return strings.ToLower(strings.TrimSuffix(file, ".md")) + ".html"
}

// checkLink returns what is wrong with a link of a page, or "". Other sites are not asked.
func (s *site) checkLink(repository, from string, l link) string {
	to, err := url.Parse(l.url)
	if err != nil {
		return err.Error()
	}
	if file, ok := strings.CutPrefix(l.url, files); ok && !l.loaded {
		file, _, _ = strings.Cut(file, "#")
		if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(file))); err != nil {
			return "the repository has no such file"
		}
		return ""
	}
	switch {
	case to.Scheme == "data" && l.loaded:
		return ""
	case to.Scheme == "" && to.Host == "":
		return s.checkInternal(from, to)
	case l.loaded:
		return "must not be loaded from elsewhere"
	case to.Scheme == "https" || to.Scheme == "http":
		if to.Hostname() == "" {
			return "has no host"
		}
		return ""
	case to.Scheme == "mailto" && to.Opaque != "":
		return ""
	}
	return "must be a path, https, http or mailto"
}

// checkInternal checks a link to the site itself.
func (s *site) checkInternal(from string, to *url.URL) string {
	target := from
	if to.Path != "" {
		target = path.Join(path.Dir(from), to.Path)
	}
	if !s.files[target] {
		return "the site has no such page"
	}
	if p := s.pages[target]; p != nil && to.Fragment != "" && !p.ids[to.Fragment] {
		return "the page has no such heading"
	}
	return ""
}
