package nginxconf

import (
	"cmp"
	"maps"
	"slices"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// Whole are static files to test globals with: nginx.conf has a location of each kind that Ingresses may
// ask for, and all directives that these may have, but for those of modules. So texts of the administrator
// that fit here fit all that Ingresses ask for later.
func Whole(env Environment, globals model.Globals, dictionaries Dictionaries) (map[string][]byte, error) {
	profiles := map[model.Profile]struct{}{}
	for _, protocol := range []model.Protocol{model.HTTP, model.GRPC, model.FastCGI} {
		for _, tls := range []bool{false, true} {
			if tls && protocol == model.FastCGI {
				continue
			}
			p := globals.Default
			p.Protocol, p.TLS, p.AsClient = protocol, tls, false
			profiles[p] = struct{}{}
			p.Access = true
			profiles[withEach(env.Directives, p)] = struct{}{}
		}
	}
	delete(profiles, globals.Default)
	sorted := slices.SortedFunc(maps.Keys(profiles), func(a, b model.Profile) int { return cmp.Compare(a.Name(), b.Name()) })
	files, err := Render(env, globals, sorted, true, dictionaries)
	if err != nil {
		return nil, err
	}
	for _, c := range globals.Files {
		files[directive.Files+"/"+c.Name] = c.Bytes
	}
	return files, nil
}

// withEach gives a profile a value of each directive of its protocol that it does not have.
func withEach(list directive.List, p model.Profile) model.Profile {
	for _, d := range list {
		if d.Plain || d.Of(p) != 0 || p.Get(d.Name).Text != "" {
			continue
		}
		switch d.Kind {
		case directive.File, directive.Statuses, directive.OwnStatuses:
		case directive.Variable:
			p = p.With(d.Holds("x"))
		case directive.Ordered:
			p = p.With(d.InOrder([]int{1}))
		default:
			if i := slices.IndexFunc(d.Samples, func(sample int64) bool { return sample != 0 }); i >= 0 {
				p = p.With(d.To(d.Samples[i]))
			}
		}
	}
	return p
}
