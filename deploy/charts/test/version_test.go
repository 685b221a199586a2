package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imageLine names an image in a manifest.
var imageLine = regexp.MustCompile(`(?m)^ *-? *image: "?([^"\s]+)"?$`)

// TestVersions: the version of the chart, its appVersion and the tag of the images are one, and
// the images are those that `make image` builds.
func TestVersions(t *testing.T) {
	c := load(t)
	if want := "v" + c.Metadata.Version; c.Metadata.AppVersion != want {
		t.Errorf("appVersion is %s, and version %s: it must be %s", c.Metadata.AppVersion, c.Metadata.Version, want)
	}
	built := tableOf(t, "docs/image.md", "| `headgate/")
	allowed := map[string]bool{}
	for _, name := range built {
		allowed["ghcr.io/headgate/"+name+":v"+c.Metadata.Version] = true
	}
	rendered, err := files(c, release{"headgate", "headgate"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, text := range rendered {
		texts[name] = text
	}
	for name := range static {
		file := filepath.Join("deploy/static", name, "deploy.yaml")
		texts[file] = read(t, file)
	}
	found := map[string]int{}
	for name, text := range texts {
		for _, image := range imageLine.FindAllStringSubmatch(text, -1) {
			found[image[1]]++
			if !allowed[image[1]] {
				t.Errorf("%s has the image %s, which `make image` does not build with the version of the chart", name, image[1])
			}
		}
	}
	if len(found) != 2 {
		t.Errorf("the images are %v, want the controller's and that of the Jobs", found)
	}
	// docs/install.md replaces them so.
	replaced := regexp.MustCompile(`^ghcr\.io/headgate/headgate[a-z-]*:v[0-9.]*$`)
	for image := range found {
		if !replaced.MatchString(image) {
			t.Errorf("the command in docs/install.md does not replace %s", image)
		}
	}
	if !strings.Contains(read(t, "docs/install.md"), `ghcr.io/headgate/\(headgate[a-z-]*\):v[0-9.]*|`) {
		t.Error("docs/install.md has another command than this test")
	}
}

// TestPreloadedAllocator: with enableMimalloc, a library is preloaded that the image has.
func TestPreloadedAllocator(t *testing.T) {
	const library = "/usr/local/lib/libmimalloc.so"
	got, err := render(load(t), release{"headgate", "headgate"}, map[string]any{"controller": map[string]any{"enableMimalloc": true}})
	if err != nil {
		t.Fatal(err)
	}
	container := controllerOf(t, got).Spec.Template.Spec.Containers[0]
	preloaded := ""
	for _, v := range container.Env {
		if v.Name == "LD_PRELOAD" {
			preloaded = v.Value
		}
	}
	if preloaded != library {
		t.Errorf("%q is preloaded, want %s", preloaded, library)
	}
	if !slices.Contains(tableOf(t, "docs/image.md", "| `/usr/local/lib/"), "libmimalloc.so") {
		t.Errorf("docs/image.md does not have %s among the image's files", library)
	}
}

// tableOf has what follows a text in the lines of a page that begin so, up to the next backquote.
func tableOf(t *testing.T, page, begin string) (list []string) {
	t.Helper()
	for line := range strings.Lines(read(t, page)) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			name, _, _ := strings.Cut(rest, "`")
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no line that begins with %s", page, begin)
	}
	return list
}

// read reads a file of the repository.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
