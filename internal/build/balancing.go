package build

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A backendSetting is an annotation that is a setting of backends.
type backendSetting struct {
	annotation string // the whole name
	feature.Declared
}

// balancing is what the oldest Ingress that uses the backend says of it, or
// the ConfigMap if no Ingress uses it. Ingresses that ask for something else
// are told.
func (b *Builder) balancing(key string, v View) (model.Balancing, []finding.Finding) {
	config := b.settings(v).config
	users := v.Users(key)
	if len(users) == 0 {
		balancing, _ := b.readBalancing(nil, config)
		return balancing, nil
	}
	owner := slices.MinFunc(users, compareAge)
	balancing, problems := b.readBalancing(owner.Annotations, config)
	fs := problemFindings(objectName(owner), problems)
	for _, ing := range users {
		if ing != owner && b.saysOfBackends(ing) {
			fs = append(fs, b.overruled(key, ing, owner, config)...)
		}
	}
	return balancing, fs
}

func (b *Builder) readBalancing(annotations map[string]string, config *feature.Config) (model.Balancing, []feature.Problem) {
	var balancing model.Balancing
	reader := feature.NewReader(b.prefix, annotations, config)
	for _, f := range b.features {
		if f.Backend != nil {
			f.Backend(reader, &balancing)
		}
	}
	return balancing, reader.Problems()
}

// overruled tells an Ingress which of its annotations count for nothing
// because an older one decides over the backend.
func (b *Builder) overruled(key string, ing, owner *networkingv1.Ingress, config *feature.Config) []finding.Finding {
	_, problems := b.readBalancing(ing.Annotations, config)
	fs := problemFindings(objectName(ing), problems)
	mine, theirs := feature.NewReader(b.prefix, ing.Annotations, config), feature.NewReader(b.prefix, owner.Annotations, config)
	for _, s := range b.ofBackends {
		bad := slices.ContainsFunc(problems, func(p feature.Problem) bool { return p.Field == s.annotation })
		if _, ok := ing.Annotations[s.annotation]; !ok || bad || s.Equal(mine, theirs) {
			continue
		}
		fs = append(fs, finding.Finding{
			Object: objectName(ing), Field: s.annotation, Code: finding.Conflict,
			Message: fmt.Sprintf("backend %s is used by %s too, which is older and decides over it", key, objectName(owner)),
			Effect:  "this annotation does nothing for that backend",
		})
	}
	return fs
}

// saysOfBackends tells whether an Ingress has annotations that are settings of
// its backends.
func (b *Builder) saysOfBackends(ing *networkingv1.Ingress) bool {
	return slices.ContainsFunc(b.ofBackends, func(s backendSetting) bool {
		_, ok := ing.Annotations[s.annotation]
		return ok
	})
}
