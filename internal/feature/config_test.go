package feature_test

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

// keyOf is the setting of a key that refers to a ConfigMap.
func keyOf(onInvalid feature.OnInvalid) feature.Setting[feature.ObjectName] {
	return feature.Setting[feature.ObjectName]{
		Key: "k", Parse: feature.Optional(feature.ObjectIn), OnInvalid: onInvalid, Scope: feature.ScopeProcess, Refers: feature.ConfigMap,
	}
}

// Keys refer to ConfigMaps, whose data only the values with them attached have.
func TestKeysRefer(t *testing.T) {
	objects := feature.Objects{ConfigMap: func(name feature.ObjectName) (map[string]string, bool) {
		return map[string]string{"of": name.String()}, name.Name == "there"
	}}
	for _, c := range []struct {
		text                  string
		onInvalid             feature.OnInvalid
		references, data, bad string
	}{
		{"a/there", feature.UseDefault, "[{ConfigMap a/there}]", "a/there", ""},
		{"a/missing", feature.UseDefault, "[{ConfigMap a/missing}]", "", "ConfigMap a/missing does not exist; the key has no effect"},
		{"a/missing", feature.Deny, "[{ConfigMap a/missing}]", "", "ConfigMap a/missing does not exist; " + feature.KeyDenies},
		{"", feature.Deny, "[]", "", ""},
	} {
		setting := keyOf(c.onInvalid)
		config, problems := feature.NewSchema("p", []feature.Feature{{Settings: []feature.AnySetting{setting}}}).Config(map[string]string{"k": c.text})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		attached, missing := config.Attach(objects)
		bad := ""
		for _, p := range missing {
			bad += p.Message + "; " + p.Effect
			if p.Field != "k" || p.Code != finding.MissingObject || p.Denies != (c.onInvalid == feature.Deny) {
				t.Errorf("%+v: %+v", c, p)
			}
		}
		data, ok := feature.ConfigMapOf(attached.Values(), setting)
		if _, without := feature.ConfigMapOf(config.Values(), setting); without || ok != (c.data != "") || data["of"] != c.data || bad != c.bad {
			t.Errorf("%+v: %v, %v, without objects %v, problems %q", c, data, ok, without, bad)
		}
		var references []string
		for _, ref := range config.References() {
			references = append(references, fmt.Sprintf("{%s %s}", ref.Kind, ref.ObjectName))
		}
		if got := fmt.Sprint(references); got != c.references {
			t.Errorf("%+v: refers to %s", c, got)
		}
	}
	for _, text := range []string{"there", "a/", "/there", "a/b/c", "a/B"} {
		if _, problems := feature.NewSchema("p", []feature.Feature{{Settings: []feature.AnySetting{keyOf(feature.UseDefault)}}}).Config(map[string]string{"k": text}); len(problems) != 1 {
			t.Errorf("%q: %v", text, problems)
		}
	}
}

// Only what is for every request may refer to an object by a key: hosts are not built again.
func TestKeysReferForTheProcess(t *testing.T) {
	setting := keyOf(feature.UseDefault)
	setting.Scope = feature.ScopeRoute
	defer func() {
		if recover() == nil {
			t.Error("a key of routes may refer to a ConfigMap")
		}
	}()
	feature.NewSchema("p", []feature.Feature{{Settings: []feature.AnySetting{setting}}})
}
