package all_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/unit"
)

// TestForbiddenDecidesNothing: an Ingress that the administrator forbids decides
// over nothing, by any annotation: with a forbidden one beside it, an annotation
// changes nothing that is built.
func TestForbiddenDecidesNothing(t *testing.T) {
	cases := featuretest.Cases(t, "..", all.Features())
	options := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "headgate"}}
	scopes := map[feature.Scope]int{}
	for _, s := range feature.AllSettings(all.Features()) {
		d := s.Spec()
		// An Ingress that is a canary makes no routes, whether or not it may be one.
		if d.Annotation == "" || strings.Contains(d.Annotation, "canary") {
			continue
		}
		for _, c := range featuretest.Beside(cases, d.Annotation) {
			if c.Annotations[d.Annotation] == "" {
				continue
			}
			options.Data = maps.Clone(c.Keys)
			if options.Data == nil {
				options.Data = map[string]string{}
			}
			options.Data["annotation-value-word-blocklist"] = "forbidden"
			objects := append(slices.Clone(c.Objects), options)
			annotations := map[string]string{"of-no-feature": "forbidden"}
			before := builtWith(t, annotations, objects...)
			maps.Copy(annotations, c.Annotations)
			after := builtWith(t, annotations, objects...)
			if !before.denied || !after.denied {
				t.Fatalf("%v: the Ingress is not denied", annotations)
			}
			for _, part := range difference(before.parts, after.parts) {
				t.Errorf("%v: a forbidden Ingress changes %s from\n%s\nto\n%s", c.Annotations, part, before.parts[part], after.parts[part])
			}
			scopes[d.Scope]++
		}
	}
	for _, scope := range annotationScopes() {
		if scopes[scope] == 0 {
			t.Errorf("no golden case has an annotation of the scope %s", scope)
		}
	}
}

// annotationScopes are those that annotations of features have.
func annotationScopes() []feature.Scope {
	var list []feature.Scope
	for _, s := range feature.AllSettings(all.Features()) {
		if d := s.Spec(); d.Annotation != "" && !slices.Contains(list, d.Scope) {
			list = append(list, d.Scope)
		}
	}
	return list
}

// TestObjectsInEveryScope has a setting that names a Secret in each scope and with
// each merge: it gets the Secret's data, a missing Secret is reported, and what a
// forbidden Ingress names is not looked at.
func TestObjectsInEveryScope(t *testing.T) {
	for scope := range feature.Scopes {
		if scope == feature.ScopeProcess {
			continue // keys can't refer
		}
		for merge := range feature.Merges {
			var got string
			names := feature.Setting[feature.ObjectName]{
				Annotation: "names", Parse: feature.Object, Refers: feature.Secret, OnInvalid: feature.Deny, Scope: scope, Merge: merge, Leads: true,
			}
			read := func(v feature.Values) {
				if data, ok := feature.FromSecret(v, names, "", maps.Clone[map[string][]byte]); ok {
					got = string(data["key"])
				}
			}
			f := feature.Feature{
				Name: "names", Settings: []feature.AnySetting{names},
				Route:   func(v feature.Values, _ *feature.RouteOut) { read(v) },
				Host:    func(v feature.Values, _ *feature.HostOut) { read(v) },
				Backend: func(v feature.Values, _ *feature.BackendOut) { read(v) },
				Names:   func(v feature.Values, _ *feature.NamesOut) { read(v) },
			}
			switch scope {
			case feature.ScopeRoute, feature.ScopeName:
				f.Host, f.Backend = nil, nil
			default: // of an Ingress alone these are not to be had
				f.Route, f.Names = nil, nil
			}
			for value, want := range map[string]string{"there": "good", "away": "", "there # evil": ""} {
				got = ""
				secret, forbid, evil := strings.Cut(value, " # ")
				builder := build.New([]feature.Feature{f}, prefix)
				s := store.New(store.Settings{Classless: true, IngressClass: "nginx", ConfigMap: types.NamespacedName{Namespace: "default", Name: "headgate"}}, builder.Refer)
				annotations := map[string]string{prefix + "/names": secret}
				if evil {
					annotations[prefix+"/other"] = forbid
				}
				s.Apply(ingress("mine", annotations, "mine.test / own"), false)
				s.Apply(&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "headgate"},
					Data:       map[string]string{"annotation-value-word-blocklist": "evil"},
				}, false)
				touched := s.Apply(&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "there"}, Data: map[string][]byte{"key": []byte("good")},
				}, false)
				if scope == feature.ScopeBackend && want != "" && !slices.Contains(touched, unit.Backend.Key("default/own/80")) {
					t.Errorf("%s: the Secret touches %v", scope, touched)
				}
				if wanted := len(s.DrainSecrets().Added) > 0; wanted == evil {
					t.Errorf("%s, merge %d, %s: the Secret is wanted %v", scope, merge, value, wanted)
				}
				_, _, fs := builder.Host("mine.test", s)
				_, _, more := builder.Backend("default/own/80", s)
				fs = slices.DeleteFunc(append(fs, more...), func(f finding.Finding) bool { return strings.HasPrefix(f.Object, "service/") })
				if got != want {
					t.Errorf("%s, merge %d, %s: the feature got %q", scope, merge, value, got)
				}
				if reported := len(fs) > 0; reported == (want != "") {
					t.Errorf("%s, merge %d, %s: findings %v", scope, merge, value, fs)
				}
			}
		}
	}
}
