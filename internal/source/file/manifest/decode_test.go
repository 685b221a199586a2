package manifest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "update the files in testdata")

// Each file has a manifest and what it decodes to: objects with the line they
// begin on, then problems.
func TestDecode(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := describe(t, archive.Files[0].Data)
			if *update {
				archive.Files[1].Data = got
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want := archive.Files[1].Data; !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func describe(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	c := Decode(data)
	for _, o := range c.Objects {
		text, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%d: %v %s\n", o.Line, o.Key, text)
	}
	var problems []string
	for _, o := range c.Objects {
		if o.Problem != nil {
			problems = append(problems, fmt.Sprintf("%05d: %s: %s; %s", o.Problem.Line, o.Problem.Object, o.Problem.Reason, o.Problem.Effect))
		}
		if e, ok := o.Object.(*Endpoints); ok {
			for _, slice := range ToSlices(e) {
				text, err := json.Marshal(slice)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "converted %s\n", text)
			}
		}
	}
	for _, f := range slices.Concat(c.Flaws, c.Duplicates) {
		problems = append(problems, fmt.Sprintf("%05d: %s", f.Line, f.Reason))
	}
	slices.Sort(problems)
	for _, p := range problems {
		fmt.Fprintln(&out, "problem in line "+strings.TrimLeft(p, "0"))
	}
	return out.Bytes()
}

// usualManifest is written as nearly all manifests are.
const usualManifest = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: default
  labels:
    app.kubernetes.io/name: shop
  annotations:
    nginx.ingress.kubernetes.io/ssl-redirect: "false"
    nginx.ingress.kubernetes.io/proxy-body-size: 8m
spec:
  ingressClassName: nginx
  tls:
  - hosts:
    - web.example.com
    secretName: certificate
  rules:
  - host: web.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service:
            name: web
            port:
              number: 80
`

func TestAliasesAreBounded(t *testing.T) {
	for _, form := range []string{"a%d: &a%d [*a%d, *a%d]\n", "a%d: &a%d {<<: [*a%d, *a%d]}\n"} {
		var b strings.Builder
		b.WriteString("a0: &a0 {x: x}\n")
		for i := 1; i < 60; i++ {
			fmt.Fprintf(&b, form, i, i, i-1, i-1)
		}
		flaws := Decode([]byte(b.String())).Flaws
		if len(flaws) != 1 || !strings.Contains(flaws[0].Reason, "aliases") {
			t.Errorf("%s: flaws %v, want one about aliases", form, flaws)
		}
	}
}

func seeds(f *testing.F) {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
		for _, d := range split(archive.Files[0].Data) {
			f.Add(d.text)
		}
	}
	f.Add([]byte(usualManifest))
	for _, item := range dumpItems {
		f.Add(fmt.Appendf(nil, item.text, 1))
	}
	f.Add([]byte("a: |\n  b\n\n    c: |-\n  # d\n\ne:\n- |-\n    f\n   \n  g\n- 'h''i'\n- \"j\\\"\\\\\\n\\t\"\n- -k\n- --l=m\n- $(n)\n- .5\n- -1\n"))
	f.Add([]byte("a: &a\n  b: *a\n"))
	f.Add([]byte("a: !!bool ''\nb: !!int x\nc: .inf\n? [d]\n: e\n"))
	f.Add([]byte("- a: 1\n  b:\n  - c\n  -  d: 2\n     e: yes\n- 010\n- 1.5\n- 2024-01-01\n- x\n"))
}

func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Count(data, []byte("\n")) + 1
		c := Decode(data)
		for _, o := range c.Objects {
			if o.Object == nil || reflect.ValueOf(o.Object).IsNil() {
				t.Fatalf("%v is nil", o.Key)
			}
			if o.Name == "" || o.Name != o.Object.GetName() || o.Namespace != o.Object.GetNamespace() {
				t.Fatalf("%v names %q in %q", o.Key, o.Object.GetName(), o.Object.GetNamespace())
			}
			if kind := reflect.TypeOf(o.Object).Elem().Name(); kind != o.Kind {
				t.Fatalf("%v is a %s", o.Key, kind)
			}
			if o.Line < 1 || o.Line > lines {
				t.Fatalf("%v in line %d of %d", o.Key, o.Line, lines)
			}
		}
		for _, p := range slices.Concat(c.Flaws, c.Duplicates) {
			if p.Line < 1 || p.Line > lines || p.Reason == "" {
				t.Fatalf("%q in line %d of %d", p.Reason, p.Line, lines)
			}
		}
	})
}
