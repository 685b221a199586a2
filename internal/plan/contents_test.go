package plan_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/plan/nginxconf"
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

	// A host that waits for its profile is served with another one at once, and so
	// refers to its new content.
	b.Set(unit.Of(carrying("b.test", large(), "four")))
	b.push(1, "put content four", "put host b.test", "del content three")
	b.reload("profile " + large().Name() + " is new")
	b.push(0, "put host b.test needs 2")
}

// Files of profiles are static. Those that nothing asks for any more stay until the next
// reload.
func TestFilesAreStatic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	authority := directive.Directive{Name: "ssl_trusted_certificate", Kind: directive.File}
	b.env.Directives = append(b.env.Directives, authority)
	set := func(host, name string, files ...model.Content) model.Profile {
		p := unlike(authority.Contains(model.Content{Name: name}))
		b.Set(unit.Of(model.Host{Name: host, Routes: []model.Route{{Path: "/", Profile: p, Files: files}}}))
		return p
	}
	one, two := model.Content{Name: "a1", Bytes: []byte("one")}, model.Content{Name: "b2", Bytes: []byte("two")}
	b.reload("profile " + set("a.test", "a1", one).Name() + " is new")
	b.Set(unit.Built{Key: unit.Host.Key("a.test")})
	b.reload("")
	if string(b.static.Files["files/a1"]) != "one" || len(b.static.Files) != 2 {
		t.Errorf("the files are %q", b.static.Files)
	}
	b.reload("profile " + set("b.test", "b2", two).Name() + " is new")
	if string(b.static.Files["files/b2"]) != "two" || len(b.static.Files) != 2 || !strings.Contains(string(b.static.Files[nginxconf.File]), "proxy_ssl_trusted_certificate files/b2;") {
		t.Errorf("the files are %q", b.static.Files)
	}
	set("c.test", "c3")
	if _, _, err := b.Next(b.env, b.static, nil); err == nil {
		t.Error("a file without content was planned")
	}
}
