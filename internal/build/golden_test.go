package build_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

var update = flag.Bool("update", false, "write the golden files again")

const seed = 7

// TestGolden builds the objects of each case. The last line of a case's
// comment, "Shows: host, name", names the kinds of units that it is about;
// only these and their findings are written. The default host is left out
// where no Ingress names it.
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
			if len(archive.Files) == 0 || archive.Files[0].Name != "in.yaml" {
				t.Fatal("the first section must be in.yaml")
			}
			objects := decode(t, archive.Files[0].Data)
			kinds := shownKinds(t, string(archive.Comment))
			got := render(objects, kinds)
			random := rand.New(rand.NewPCG(seed, 0))
			for range 5 {
				random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
				if again := render(objects, kinds); again != got {
					t.Errorf("in another order (seed %d):\n%s\nwant:\n%s", seed, again, got)
				}
			}
			if *update {
				archive.Files = append(archive.Files[:1], txtar.Parse([]byte(got)).Files...)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := string(txtar.Format(&txtar.Archive{Files: archive.Files[1:]}))
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s\n(go test -update writes it)", got, want)
			}
		})
	}
}

func shownKinds(t *testing.T, comment string) []unit.Kind {
	t.Helper()
	_, names, ok := strings.Cut(strings.TrimSpace(comment), "\nShows: ")
	if !ok {
		t.Fatal("the comment must end with a line \"Shows: …\"")
	}
	var kinds []unit.Kind
	for name := range strings.SplitSeq(names, ", ") {
		kind := unit.Kind(name)
		if !kind.Traits().Built {
			t.Fatalf("no kind is called %q", name)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func newBuilder() *build.Builder { return build.New(fakeFeatures(), "nginx.ingress.kubernetes.io") }

func newStore(objects []metav1.Object) *store.Store {
	s := store.New(store.Settings{
		IngressClass: "nginx", ControllerClass: "k8s.io/ingress-nginx", Classless: true, Scope: spec.Scope{DeepInspect: true},
		ConfigMap:          types.NamespacedName{Namespace: "headgate", Name: "options"},
		DefaultCertificate: types.NamespacedName{Namespace: "headgate", Name: "default"},
		TCPServices:        types.NamespacedName{Namespace: "headgate", Name: "tcp"},
		UDPServices:        types.NamespacedName{Namespace: "headgate", Name: "udp"},
		ReservedPorts:      map[uint16]string{80: "--http-port", 10246: "--status-port"},
	}, newBuilder().Refer)
	for _, o := range objects {
		s.Apply(o, false)
	}
	return s
}

// render is the text of all units of the kinds.
func render(objects []metav1.Object, kinds []unit.Kind) string {
	s := newStore(objects)
	builder := newBuilder()
	var text strings.Builder
	var findings []finding.Finding
	for _, key := range s.All() {
		if !slices.Contains(kinds, key.Kind) || key.Name == model.DefaultHost && len(s.Ingresses(key.Name)) == 0 {
			continue
		}
		unit, fs := renderUnit(builder, key, s)
		fmt.Fprintf(&text, "-- %s --\n%s", key, unit)
		findings = append(findings, fs...)
	}
	text.WriteString("-- findings --\n")
	for _, f := range finding.Sort(findings) {
		text.WriteString(f.String() + "\n")
	}
	return text.String()
}

func renderUnit(b *build.Builder, key unit.Key, v build.View) (string, []finding.Finding) {
	built, fs := b.Unit(key, v)
	var certificate *model.Certificate
	if len(built.Certificates) > 0 {
		certificate = &built.Certificates[0]
	}
	switch m := built.Model.(type) {
	case model.Globals:
		return globalsText(m), fs
	case model.Host:
		return hostText(m), fs
	case model.NamePatterns:
		return patternsText(m, built.Certificates), fs
	case model.Certificate:
		return defaultCertificateText(&m), fs
	case model.Name:
		return nameText(m, certificate), fs
	case model.Backend:
		return backendText(m), fs
	case model.Stream:
		return streamText(m), fs
	}
	switch key.Kind {
	case unit.DefaultCertificate:
		return defaultCertificateText(nil), fs
	case unit.Refusal:
		return orGone(len(fs) > 0, fmt.Sprintf("%d findings\n", len(fs))), fs
	}
	return "gone\n", fs
}

func orGone(found bool, text string) string {
	if !found {
		return "gone\n"
	}
	return text
}
