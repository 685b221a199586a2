package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// policies say which settings hold and where they come from.
func (x *explainer) policies(settings []feature.Reading) []Policy {
	list := make([]Policy, len(settings))
	for i, s := range settings {
		p := Policy{
			Feature: s.Feature, Setting: cmp.Or(s.Annotation, s.Key), Value: s.Value, From: string(s.From),
			Written: s.Written, Refused: s.Refused, Denies: s.Denies,
		}
		switch {
		case s.From == feature.FromAnnotation || s.Refused:
			p.Object = "ingress/" + s.Ingress.Namespace + "/" + s.Ingress.Ingress
			x.involve(p.Object)
		case s.From == feature.FromKey:
			if object := x.Store.ConfigMap(); object != nil {
				p.Object = "configmap/" + object.Namespace + "/" + object.Name
			}
		}
		list[i] = p
	}
	return list
}

// explainProcess adds what the NGINX process is told by keys, which holds for all
// connections.
func (x *explainer) explainProcess() {
	for _, p := range x.policies(x.Builder.TraceProcess(x.Store)) {
		if p.From == string(feature.FromKey) && !slices.Contains(x.out.Policies, p) {
			x.out.Policies = append(x.out.Policies, p)
		}
	}
}

// explainProfile says by what a profile differs from the default one.
func (x *explainer) explainProfile(p model.Profile) {
	said := &Profile{Name: p.Name(), Default: p == x.globals.Default}
	is, usual := reflect.ValueOf(p), reflect.ValueOf(x.globals.Default)
	for i := range is.NumField() {
		if !is.Field(i).Equal(usual.Field(i)) {
			said.Differs = append(said.Differs, Difference{
				Setting: words(is.Type().Field(i).Name), Value: fmt.Sprint(is.Field(i)), Default: fmt.Sprint(usual.Field(i)),
			})
		}
	}
	x.out.Profile = said
}

// words writes the name of a field as words: "BodyStep" is "body step".
func words(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}

// encode writes plain data as the data plane gets it.
func encode(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("explain: a policy that is no plain data: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
