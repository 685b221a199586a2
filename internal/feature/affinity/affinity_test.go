package affinity_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/affinity"
	"github.com/headgate/headgate/internal/model"
)

var (
	// attributes are all that the cookie can have.
	attributes = regexp.MustCompile(`^(; Path=[A-Za-z0-9._~/:,?&=%!$'()*+@-]+|; Domain=[A-Za-z0-9._~/:-]+|; Max-Age=-?[0-9]+|; Secure|; HttpOnly|; SameSite=(None|Lax|Strict))+$`)
	token      = regexp.MustCompile(`^[A-Za-z0-9._~/:-]+$`)
)

// FuzzAttributes has any text in an annotation and in the path of the rule: no other attribute
// gets into the cookie.
func FuzzAttributes(f *testing.F) {
	for _, text := range []string{"/x", "a; Secure", "x\r\nSet-Cookie: a=b", "None", "5", "-0", "/é\x00", "/(a|b)", "1e3", " a b "} {
		f.Add(text)
	}
	schema := feature.NewSchema("p", []feature.Feature{affinity.Feature()})
	config, _ := schema.Config(nil)
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range affinity.Feature().Settings {
			d := s.Spec()
			if value, err := d.Parse(text); d.Annotation == "session-cookie-name" && err == nil && !token.MatchString(value.(string)) {
				t.Errorf("%q is the name %q", text, value)
			}
			annotations := map[string]string{"p/affinity": "cookie"}
			annotations["p/"+d.Annotation] = text
			out := feature.RouteOut{Route: &model.Route{Path: "/" + text}}
			affinity.Feature().Route(schema.Parse(model.Origin{}, annotations, config).Values(), &out)
			for _, p := range out.Route.Policies {
				packed, err := json.Marshal(p.Value)
				var policy struct{ Attributes string }
				if err != nil || json.Unmarshal(packed, &policy) != nil || !attributes.MatchString(policy.Attributes) {
					t.Errorf("%s: %q gives %s, %v", d.Annotation, text, packed, err)
				}
			}
		}
	})
}
