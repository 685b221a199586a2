package review_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/tools/txtar"

	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/command/lint"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file/manifest"
)

var update = flag.Bool("update", false, "write the golden files and docs/admission.md again")

const prefix = "nginx.ingress.kubernetes.io"

func settings() review.Settings {
	s := review.Settings{Features: all.Features(), AnnotationPrefix: prefix}
	s.Store.IngressClass, s.Store.ControllerClass = "nginx", "k8s.io/ingress-nginx"
	s.Store.ConfigMap = types.NamespacedName{Namespace: "headgate", Name: "options"}
	s.Store.Scope = spec.Scope{DeepInspect: true}
	return s
}

// reviewer has loaded the objects, and the IngressClass nginx.
func reviewer(t testing.TB, s review.Settings, objects ...metav1.Object) *review.Reviewer {
	t.Helper()
	r := review.New(s)
	changes := []source.Change{{Object: &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"},
	}}}
	for _, o := range objects {
		changes = append(changes, source.Change{Object: o})
	}
	review.Load(r, changes)
	return r
}

// decode reads manifests.
func decode(t testing.TB, data []byte) []metav1.Object {
	t.Helper()
	var objects []metav1.Object
	content := manifest.Decode(data)
	if len(content.Flaws) > 0 {
		t.Fatalf("flaws: %v", content.Flaws)
	}
	for _, o := range content.Objects {
		objects = append(objects, o.Object)
	}
	return objects
}

// decodeAll reads manifests with several versions of an object.
func decodeAll(t *testing.T, data []byte) []metav1.Object {
	t.Helper()
	var objects []metav1.Object
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		objects = append(objects, decode(t, document)...)
	}
	return objects
}

// TestGolden has each Ingress of review.yaml reviewed beside the objects of in.yaml. A line
// "flag: value" of a case's comment sets what a flag would.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := settings()
			setFlags(t, &s, string(archive.Comment))
			sections := map[string][]byte{}
			for _, f := range archive.Files {
				sections[f.Name] = f.Data
			}
			got := decisions(t, reviewer(t, s, decode(t, sections["in.yaml"])...), decodeAll(t, sections["review.yaml"]))
			if *update {
				archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "decisions" })
				archive.Files = append(archive.Files, txtar.File{Name: "decisions", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want := string(sections["decisions"]); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

var flagLine = regexp.MustCompile(`(?m)^--([a-z-]+)(?:=(.*))?$`)

func setFlags(t *testing.T, s *review.Settings, comment string) {
	t.Helper()
	for _, match := range flagLine.FindAllStringSubmatch(comment, -1) {
		switch name, value := match[1], match[2]; name {
		case "disable-catch-all":
			s.Store.Scope.NoCatchAll = true
		case "annotations-prefix":
			s.AnnotationPrefix = value
		case "watch-namespace":
			s.Namespace = value
		case "watch-namespace-selector":
			selector, err := labels.Parse(value)
			if err != nil {
				t.Fatal(err)
			}
			s.Store.Namespaces = selector
		case "watch-ingress-without-class":
			s.Store.WatchWithoutClass = true
		default:
			t.Fatalf("unknown flag %s", name)
		}
	}
}

func decisions(t *testing.T, r *review.Reviewer, objects []metav1.Object) string {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		ing, ok := o.(*networkingv1.Ingress)
		if !ok {
			t.Fatalf("%T is not an Ingress", o)
		}
		d, err := r.Review(t.Context(), ing)
		if err != nil {
			t.Fatal(err)
		}
		verdict := "allowed"
		if !d.Allowed() {
			verdict = "refused: " + d.Message()
		}
		fmt.Fprintf(&b, "%s/%s: %s\n", ing.Namespace, ing.Name, verdict)
		for _, w := range d.Warnings() {
			fmt.Fprintf(&b, "  warning: %s\n", w)
		}
	}
	return b.String()
}

// TestPage compares the table of docs/admission.md with the rules.
func TestPage(t *testing.T) {
	const file, begin, end = "../../../docs/admission.md", "<!-- rules -->\n", "<!-- end of rules -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks %s or %s", file, begin, end)
	}
	want := before + begin + review.Table() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s is not what the code has: go test ./internal/admission/review -update", file)
	}
}

// TestEveryCodeHasARule compares the rules with those of lint, which has all codes.
func TestEveryCodeHasARule(t *testing.T) {
	table := review.Table()
	for _, code := range lint.Codes() {
		if strings.Count(table, "| "+code+" |") != 1 {
			t.Errorf("the rules must have %s once", code)
		}
	}
	if rows := strings.Count(table, "\n") - 2; rows != len(lint.Codes()) {
		t.Errorf("there are %d rules for %d codes", rows, len(lint.Codes()))
	}
}
