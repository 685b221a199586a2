package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// write unpacks an archive into a directory.
func write(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const repository = `
-- README.md --
-- docs/README.md --
-- docs/web.md --
-- docs/new.md --
-- docs/testdata/case.md --
-- bin/old.md --
-- deploy/values.yaml --
`

const good = `
-- index.html --
<article><h1 id="docs">Docs</h1></article>
-- readme.html --
<link rel="stylesheet" href="./style.css"><link rel="icon" href="data:,"><script src="search.js"></script>
<article>
<h1 id="top">Headgate</h1>
<p>An <em>Ingress</em>
controller</p>
<h2 id="so">So</h2><table><tr><td>a</td><td>b</td></tr></table><pre>x</pre>
<!-- raw HTML omitted -->
</article>
<a href="#so"></a><a href="docs/web.html"></a><a href="./docs/web.html#a%C3%A4"></a>
<a href="https://github.com/headgate/headgate/blob/main/deploy/values.yaml"></a>
<a href="https://example.com/x?y#z"></a><a href="mailto:a@example.com"></a>
-- docs/web.html --
<article><h2 id="aä"></h2></article><a href="../readme.html#so"></a><a href="../index.html"></a>
-- docs/new.html --
-- style.css --
a { color: red }
-- search.js --
search()
`

func TestCheckAccepts(t *testing.T) {
	faults := check(t, good)
	if len(faults) > 0 {
		t.Errorf("faults of a site without any: %q", faults)
	}
}

func TestCheckFinds(t *testing.T) {
	tests := map[string]struct{ page, fault string }{
		"page":       {`<a href="docs/wab.html"></a>`, "the site has no such page"},
		"above":      {`<a href="../readme.html"></a>`, "the site has no such page"},
		"heading":    {`<a href="#sa"></a>`, "the page has no such heading"},
		"other's":    {`<a href="docs/web.html#so"></a>`, "the page has no such heading"},
		"file":       {`<a href="https://github.com/headgate/headgate/blob/main/deploy/value.yaml"></a>`, "the repository has no such file"},
		"script":     {`<script src="https://example.com/x.js"></script>`, "must not be loaded from elsewhere"},
		"any scheme": {`<script src="//example.com/x.js"></script>`, "must not be loaded from elsewhere"},
		"style":      {`<link rel="stylesheet" href="https://example.com/x.css">`, "must not be loaded from elsewhere"},
		"image":      {`<img src="https://github.com/headgate/headgate/blob/main/deploy/values.yaml">`, "must not be loaded from elsewhere"},
		"no script":  {`<script src="searches.js"></script>`, "the site has no such page"},
		"no host":    {`<a href="https:///x"></a>`, "has no host"},
		"syntax":     {`<a href="https://exa mple.com/"></a>`, "invalid character"},
		"scheme":     {`<a href="htps://example.com/"></a>`, "must be a path"},
		"program":    {`<a href="javascript:x()"></a>`, "must be a path"},
		"HTML":       {`<article><p>the <!-- raw HTML omitted --></p></article>`, "has an HTML tag"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			faults := check(t, strings.Replace(good, "<a href=", test.page+"<a href=", 1))
			if len(faults) != 1 || !strings.Contains(faults[0], test.fault) {
				t.Errorf("faults are %q, want one with %q", faults, test.fault)
			}
		})
	}
}

func TestCheckFindsWhatIsLoaded(t *testing.T) {
	faults := check(t, strings.NewReplacer("color: red", "background: url(x)", "search()", "fetch('https://example.com')").Replace(good))
	want := []string{`search.js: has "https://"; must load nothing`, `style.css: has "url("; must load nothing`}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Error(diff)
	}
}

func TestCheckFindsMissingPages(t *testing.T) {
	site, _, _ := strings.Cut(good, "-- docs/new.html")
	want := []string{"docs/new.md: is not on the site; add it to scripts/site/hugo.yaml"}
	faults := check(t, site+"-- style.css --\n-- search.js --\n")
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Error(diff)
	}
}

func TestSections(t *testing.T) {
	s, err := readSite(write(t, good))
	if err != nil {
		t.Fatal(err)
	}
	want := []section{{"top", "Headgate", "An Ingress controller"}, {"so", "So", "a b x"}}
	if diff := cmp.Diff(want, s.pages["readme.html"].sections, cmp.AllowUnexported(section{})); diff != "" {
		t.Error(diff)
	}
}

func check(t *testing.T, archive string) []string {
	t.Helper()
	s, err := readSite(write(t, archive))
	if err != nil {
		t.Fatal(err)
	}
	faults, err := s.check(write(t, repository))
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// TestCheckPaths: a page names files and folders that exist.
func TestCheckPaths(t *testing.T) {
	dir := write(t, "-- internal/store/store.go --\n-- cmd/README.md --\n")
	const text = "`internal/store`, `internal/store/`, `internal/*/store.go`, `internal/feature/NAME`, `cmd/README.md`, `go test ./internal/gone`,\n" +
		"`internal/stored`, `cmd/*.go`"
	want := []string{"page.md: the repository has no internal/stored", "page.md: the repository has no cmd/*.go"}
	if diff := cmp.Diff(want, checkPaths(dir, "page.md", text)); diff != "" {
		t.Error(diff)
	}
}
