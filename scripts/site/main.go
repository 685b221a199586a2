// Command site builds the site from the Markdown of the repository: Hugo makes
// the pages, as hugo.yaml says. Then the program checks all links and writes the
// index of the search.
//
//	site [-o DIR]
//
// It runs at the root of the repository. The exit status is 1 if a link leads
// nowhere, if a page is missing, or if a page would load something from elsewhere.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const config = "scripts/site/hugo.yaml"

func main() {
	out := flag.String("o", "bin/site", "directory to write the site to; its content is replaced")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string) error {
	if err := generate(out); err != nil {
		return err
	}
	s, err := readSite(out)
	if err != nil {
		return err
	}
	faults, err := s.check(".")
	if err != nil {
		return err
	}
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("the site has %d faults", len(faults))
	}
	if err := s.writeIndex(out); err != nil {
		return err
	}
	fmt.Printf("%s: %d pages, %d links checked\n", filepath.Join(out, "index.html"), len(s.pages), s.links())
	return nil
}

// generate has Hugo write the pages.
func generate(out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	cache, err := filepath.Abs("bin/hugo")
	if err != nil {
		return err
	}
	// Hugo leaves what an earlier run wrote.
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	hugo := exec.Command("hugo", "--config", config, "--destination", out, "--noBuildLock")
	hugo.Env = append(os.Environ(), "HUGO_CACHEDIR="+cache)
	if output, err := hugo.CombinedOutput(); err != nil {
		return fmt.Errorf("running hugo, which scripts/install-deps site installs: %w\n%s", err, output)
	}
	return nil
}
