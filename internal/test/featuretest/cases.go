package featuretest

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/feature"
)

// A Case is a line of a golden file with annotations and keys that are all taken,
// and that no feature denies, for an NGINX that lacks nothing and a Service without
// appProtocol. Tests that know no
// single feature feed on them.
type Case struct {
	// Annotations are by their names without the prefix.
	Annotations map[string]string
	// Keys are what the ConfigMap has.
	Keys map[string]string
	// Objects are the Secrets and ConfigMaps of the file. They must not be
	// changed.
	Objects []metav1.Object
}

// All are a case's objects and the ConfigMap default/headgate with its keys.
func (c Case) All() []metav1.Object {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "headgate"}
	return append(slices.Clone(c.Objects), &corev1.ConfigMap{ObjectMeta: meta, Data: maps.Clone(c.Keys)})
}

// Cases are those of all features, in the order of their directories, from the
// golden files below dir, which is internal/feature.
func Cases(t testing.TB, dir string, features []feature.Feature) []Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files below %s: %v", dir, err)
	}
	var cases []Case
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data := dataOf(t, slices.DeleteFunc(slices.Clone(archive.Files), func(f txtar.File) bool {
			return f.Name == "in" || f.Name == "out"
		}))
		objects := metaObjects(data)
		for line := range strings.Lines(string(archive.Files[0].Data)) {
			if line = strings.TrimSuffix(line, "\n"); line == "" {
				continue
			}
			of := read(t, line)
			if len(of.lacking) > 0 || of.appProtocol != "" || !taken(features, of.annotations, of.keys, objectsOf(data)) {
				continue
			}
			annotations := map[string]string{}
			for name, value := range of.annotations {
				annotations[strings.TrimPrefix(name, prefix+"/")] = value
			}
			cases = append(cases, Case{annotations, of.keys, objects})
		}
	}
	return cases
}

// taken reports whether there are annotations, and whether features take these and
// the keys and have the route answer.
func taken(features []feature.Feature, annotations, keys map[string]string, objects feature.Objects) bool {
	declared := map[string]feature.AnySetting{}
	for _, s := range feature.AllSettings(features) {
		declared[prefix+"/"+s.Spec().Annotation] = s
	}
	for name, value := range annotations {
		if declared[name] == nil {
			return false
		}
		if _, err := declared[name].Spec().Parse(strings.TrimSpace(value)); err != nil {
			return false
		}
	}
	in := newInput(features, settings{annotations: annotations, keys: keys}, objects)
	for _, f := range features {
		if route, _ := routeOf(f, in); route.Denied {
			return false
		}
	}
	return len(annotations) > 0 && len(in.problems) == 0
}

// metaObjects are the objects of a golden file as Kubernetes has them.
func metaObjects(data map[string]map[string]string) []metav1.Object {
	var objects []metav1.Object
	for object, values := range data {
		kind, whole, _ := strings.Cut(object, " ")
		namespace, name, _ := strings.Cut(whole, "/")
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		switch kind {
		case "secret":
			secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
			for key, value := range values {
				secret.Data[key] = []byte(value)
			}
			objects = append(objects, secret)
		default:
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: meta, Data: values})
		}
	}
	slices.SortFunc(objects, func(a, b metav1.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objects
}
