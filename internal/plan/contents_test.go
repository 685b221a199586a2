package plan_test

import (
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

func carrying(name string, profile model.Profile, contents ...string) model.Host {
	h := model.Host{Name: name}
	for _, c := range contents {
		h.Routes = append(h.Routes, model.Route{Path: "/" + c, Profile: profile, Contents: []model.Content{{Name: c, Bytes: model.Confidential(c)}}})
	}
	return h
}

func TestContentsGoWithTheirLastHost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := carrying("a.test", usualProfile(), "one", "one")
	first.Contents = []model.Content{{Name: "two", Bytes: model.Confidential("two")}}
	b.Set(unit.Of(first))
	b.Set(unit.Of(carrying("b.test", usualProfile(), "one")))
	b.push(0, "put globals globals", "put content one", "put content two", "put host a.test", "put host b.test")
	b.Set(unit.Of(carrying("b.test", usualProfile(), "three")))
	b.push(0, "put content three", "put host b.test")
	b.Set(unit.Of(carrying("a.test", usualProfile(), "two")))
	b.push(0, "put host a.test", "del content one")
	b.Set(unit.Built{Key: unit.Host.Key("a.test")})
	b.push(0, "del host a.test", "del content two")

	// What is applied of a host that waits for its profile still refers to its
	// content.
	b.Set(unit.Of(carrying("b.test", large(), "four")))
	b.push(1, "put content four")
	b.reload("profile " + large().Name() + " is new")
	b.push(0, "put host b.test needs 2", "del content three")
}
