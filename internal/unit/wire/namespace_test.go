package wire_test

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/wire"
)

// Each unit is of a namespace, of all, or of no group: there is none that others get by mistake.
func TestNamespace(t *testing.T) {
	for want, list := range map[string][]any{
		wire.Everyone: {model.Globals{}, model.Certificate{}, model.Host{Name: "_"}, model.Name{Name: "_"}},
		wire.NoGroup:  {model.NamePatterns{}, model.OCSPResponse{Certificate: "hash"}, model.Backend{Key: "/auth.test/80"}},
		"shop":        {model.Host{Name: "a.test", Namespace: "shop"}, model.Name{Name: "a.test", Namespace: "shop"}, model.Backend{Key: "shop/web/80"}, model.Stream{Namespace: "shop"}},
	} {
		for _, m := range list {
			if got := wire.Namespace(unit.Built{Model: m}); got != want {
				t.Errorf("%T %v is of %q, want %q", m, m, got, want)
			}
		}
	}
	for _, of := range unit.Kinds() {
		if of.Built {
			// It panics for a model that is missing.
			wire.Namespace(unit.Built{Key: of.Kind.Key("x"), Model: zero(of.Kind)})
		}
	}
}

func zero(kind unit.Kind) any {
	switch kind {
	case unit.Globals:
		return model.Globals{}
	case unit.DefaultCertificate:
		return model.Certificate{}
	case unit.OCSPResponse:
		return model.OCSPResponse{}
	case unit.Backend:
		return model.Backend{}
	case unit.Host:
		return model.Host{}
	case unit.Name:
		return model.Name{}
	case unit.Patterns:
		return model.NamePatterns{}
	case unit.Stream:
		return model.Stream{}
	}
	return nil
}

// What a host needs of other namespaces is found wherever its policies name it.
func TestNeeds(t *testing.T) {
	policy := model.Policy{Feature: "external_auth", Value: map[string]any{"backend": "sso/oauth/4180", "other": []string{"/auth.test/8080", "text/html", "/a/b/c", `quo"ted/a/b`}}}
	h := model.Host{Name: "a.test", Namespace: "shop", Routes: []model.Route{{Path: "/", Backend: "shop/web/80", Policies: []model.Policy{policy}}}}
	list, err := wire.Encode(unit.Of(h))
	if err != nil {
		t.Fatal(err)
	}
	got := list[0].Needs
	slices.SortFunc(got, unit.Key.Compare)
	if want := []unit.Key{unit.Backend.Key("/auth.test/8080"), unit.Backend.Key("sso/oauth/4180")}; !slices.Equal(got, want) {
		t.Errorf("it needs %v, want %v", got, want)
	}
}
