package feature_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/template"
)

func TestObject(t *testing.T) {
	check(t, feature.Object, []parseCase{
		{"users", "users"}, {"a/users.v2", "a/users.v2"}, {"", nil}, {"/users", nil}, {"a/", nil}, {"a/b/c", nil}, {"A", nil}, {"a.b/c", nil},
		{"../x", nil}, {"a b", nil}, {"-a", nil}, {strings.Repeat("a", 253), strings.Repeat("a", 253)}, {strings.Repeat("a", 254), nil},
	})
}

func FuzzObject(f *testing.F) {
	f.Add("a/b")
	f.Add("a")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := feature.Object(text)
		if err == nil && (name.String() != text || strings.ContainsAny(name.Namespace, "/.") || strings.Contains(name.Name, "/")) {
			t.Fatalf("%q gave %#v", text, name)
		}
	})
}

func TestReferredObjects(t *testing.T) {
	secret := feature.Setting[feature.ObjectName]{Annotation: "secret", Parse: feature.Object, OnInvalid: feature.Deny, Refers: feature.Secret}
	shared := feature.Setting[feature.ObjectName]{Annotation: "shared", Parse: feature.Object, Refers: feature.ConfigMap, AnyNamespace: true}
	lax := feature.Setting[feature.ObjectName]{Annotation: "lax", Parse: feature.Object, OnInvalid: feature.DenyMissing, Refers: feature.ConfigMap}
	schema := feature.NewSchema("p", []feature.Feature{{Name: "f", Settings: []feature.AnySetting{secret, shared, lax}}})
	objects := feature.Objects{
		Secret: func(name feature.ObjectName) (map[string][]byte, bool) {
			return map[string][]byte{"of": []byte(name.String())}, name.Name == "there"
		},
		ConfigMap: func(name feature.ObjectName) (map[string]string, bool) {
			return map[string]string{"of": name.String()}, name.Name == "there"
		},
	}
	for _, c := range []struct {
		annotation, value, key string
		refers, data           string
		denied                 bool
		problem                finding.Code
	}{
		{"secret", "there", "false", "[Secret mine/there]", "mine/there", false, ""},
		{"secret", "mine/there", "false", "[Secret mine/there]", "mine/there", false, ""},
		{"secret", "other/there", "false", "[Secret other/there]", "", true, finding.InvalidValue},
		{"secret", "other/there", "true", "[Secret other/there]", "other/there", false, ""},
		{"secret", "away", "false", "[Secret mine/away]", "", true, finding.MissingObject},
		{"secret", "no name", "false", "[]", "", true, finding.InvalidValue},
		{"shared", "other/there", "false", "[ConfigMap other/there]", "other/there", false, ""},
		{"shared", "other/away", "false", "[ConfigMap other/away]", "", false, finding.NotAllowed},
		{"lax", "no name", "false", "[]", "", false, finding.InvalidValue},
		{"lax", "away", "false", "[ConfigMap mine/away]", "", true, finding.MissingObject},
		{"none", "", "false", "[]", "", false, ""},
	} {
		config, _ := schema.Config(map[string]string{"allow-cross-namespace-resources": c.key})
		p := schema.Parse(model.Origin{Namespace: "mine", Ingress: "i"}, map[string]string{"p/" + c.annotation: c.value}, config).Attach(objects)
		name := fmt.Sprintf("%s: %s, cross-namespace %s", c.annotation, c.value, c.key)
		var refs []string
		for _, ref := range p.References() {
			refs = append(refs, ref.Kind.String()+" "+ref.String())
		}
		if got := fmt.Sprint(refs); got != c.refers {
			t.Errorf("%s: refers to %s, want %s", name, got, c.refers)
		}
		inSecret, _ := feature.FromSecret(p.Values(), secret, "", maps.Clone[map[string][]byte])
		inConfigMap, _ := feature.ConfigMapOf(p.Values(), shared)
		if got := string(inSecret["of"]) + inConfigMap["of"]; got != c.data && !(c.problem == finding.MissingObject && c.data == "") {
			t.Errorf("%s: data of %q, want %q", name, got, c.data)
		}
		problems := p.Problems()
		if p.Denied() != c.denied || c.problem == "" && len(problems) > 0 || c.problem != "" && (len(problems) != 1 || problems[0].Code != c.problem) {
			t.Errorf("%s: denied %v, problems %+v", name, p.Denied(), problems)
		}
	}
}

func TestForbidden(t *testing.T) {
	text := func(text string) (string, error) { return text, nil }
	low := feature.Setting[string]{Annotation: "low", Parse: text}
	high := feature.Setting[string]{Annotation: "high", Parse: text, Risk: feature.High}
	critical := feature.Setting[string]{Annotation: "critical", Parse: text, Risk: feature.Critical}
	schema := feature.NewSchema("p", []feature.Feature{{Settings: []feature.AnySetting{low, high, critical}}})
	for _, c := range []struct {
		annotations map[string]string
		keys        map[string]string
		denied      string
	}{
		{map[string]string{"p/low": "x", "p/high": "x"}, nil, ""},
		{map[string]string{"p/low": "x", "p/critical": "x"}, nil, "p/critical"},
		{map[string]string{"q/critical": "x"}, nil, ""},
		{map[string]string{"p/critical": "x"}, map[string]string{"annotations-risk-level": "critical"}, ""},
		{map[string]string{"p/low": "x", "p/high": "x"}, map[string]string{"annotations-risk-level": "Medium"}, "p/high"},
		{map[string]string{"p/high": "x"}, map[string]string{"annotations-risk-level": "higher"}, "p/high"},
		{map[string]string{"p/low": "x evil y"}, map[string]string{"annotation-value-word-blocklist": "bad, evil"}, "p/low"},
		{map[string]string{"p/unknown": "evil"}, map[string]string{"annotation-value-word-blocklist": "evil"}, "p/unknown"},
		{map[string]string{"q/low": "evil"}, map[string]string{"annotation-value-word-blocklist": "evil"}, ""},
		{map[string]string{"p/low": "fine"}, map[string]string{"annotation-value-word-blocklist": ""}, ""},
	} {
		config, problems := schema.Config(c.keys)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		p := schema.Parse(model.Origin{Namespace: "a", Ingress: "b"}, c.annotations, config)
		field := ""
		if ps := p.Problems(); len(ps) == 1 && ps[0].Code == finding.NotAllowed {
			field = ps[0].Field
		} else if len(ps) > 0 {
			t.Errorf("%v with %v: %+v", c.annotations, c.keys, ps)
		}
		if field != c.denied || p.Denied() != (c.denied != "") || p.Forbidden() != p.Denied() || p.Forbidden() && low.Get(p.Values()) != "" {
			t.Errorf("%v with %v: denied %v, forbidden %v by %q, want %q", c.annotations, c.keys, p.Denied(), p.Forbidden(), field, c.denied)
		}
	}
}

func TestTemplate(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "[]",
		"plain":                         "[plain]",
		"https://$host/x?u=${uri}":      "[https:// [host] /x?u= [uri]]",
		"$arg_a$cookie_b_c$http_x_d":    "[[arg a] [cookie b_c] [http x_d]]",
		"${host}name":                   "[[host] name]",
		"/$1/${name}":                   "[/ [group 1] / [group name]]",
		"$1.a/$2b$10":                   "[[group 1] .a/ [group 2] b [group 1] 0]",
		"$":                             "",
		"$ host":                        "",
		"${host":                        "",
		"$ssl_client_raw_cert$document": "",
		"a$-b":                          "",
	} {
		parsed, err := template.Parse(text, true)
		if strings.Contains(text, "ssl_client") {
			parsed, err = template.Parse(text, false)
		}
		got := ""
		if err == nil {
			list := []string{}
			for _, p := range parsed {
				switch {
				case p.Variable == "":
					list = append(list, p.Literal)
				case p.Name == "":
					list = append(list, "["+p.Variable+"]")
				default:
					list = append(list, "["+p.Variable+" "+p.Name+"]")
				}
			}
			got = fmt.Sprint(list)
		}
		if got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"https://$host/$1?u=$arg_x", "$$", "${", "${}", "$hg_request", "$1a", "$http_"} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, names bool) {
		parsed, err := template.Parse(text, names)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("%q: an error of %d bytes", text, len(err.Error()))
			}
			return
		}
		var b strings.Builder
		for _, p := range parsed {
			if strings.Contains(p.Literal, "$") {
				t.Fatalf("%q: a variable is left in %q", text, p.Literal)
			}
			if p.Variable == "group" && !names && len(p.Name) > 1 {
				t.Fatalf("%q: a group by its name", text)
			}
			b.WriteString(p.Literal)
		}
		if !strings.Contains(text, "$") && b.String() != text {
			t.Fatalf("%q became %q", text, b.String())
		}
	})
}
