package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// policies describes settings and where they come from.
func (x *explainer) policies(settings []feature.Reading) []Policy {
	list := make([]Policy, len(settings))
	for i, s := range settings {
		p := Policy{
			Feature: s.Feature, Setting: cmp.Or(s.Annotation, s.Key), Value: s.Value, From: string(s.From),
			Written: s.Written, Rejected: s.Refused, Denies: s.Denies,
		}
		switch {
		case s.From == feature.FromAnnotation || s.Refused:
			p.Object = spec.OriginName(s.Ingress)
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

// explainProcess adds the settings of the NGINX process, which apply to all
// connections.
func (x *explainer) explainProcess() {
	for _, p := range x.policies(x.Builder.TraceProcess(x.Store)) {
		if p.From == string(feature.FromKey) && !slices.Contains(x.out.Policies, p) {
			x.out.Policies = append(x.out.Policies, p)
		}
	}
}

// explainProfile describes how a profile differs from the default one.
func (x *explainer) explainProfile(p model.Profile) {
	said := &Profile{Name: p.Name(), Default: p == x.globals.Default}
	usual := x.globals.Default
	names := map[string]struct{}{}
	for _, v := range slices.Concat(p.Values(), usual.Values()) {
		names[v.Name] = struct{}{}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x.differ(said, strings.ReplaceAll(name, "_", " "), p.Get(name), usual.Get(name))
	}
	x.differ(said, "access phase", p.Access, usual.Access)
	x.differ(said, "protocol", p.Protocol, usual.Protocol)
	x.differ(said, "TLS", p.TLS, usual.TLS)
	x.out.Profile = said
}

func (x *explainer) differ(said *Profile, setting string, is, usual any) {
	if is != usual {
		said.Differs = append(said.Differs, Difference{Setting: setting, Value: fmt.Sprint(is), Default: fmt.Sprint(usual)})
	}
}

// encode encodes plain data as for the data plane.
func encode(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("explain: a policy is not plain data: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
