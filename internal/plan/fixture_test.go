package plan_test

import (
	"testing"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/store"
)

const mib = 1 << 20

var dictionaries = nginxconf.Dictionaries{Number: 1, Units: mib, Versions: mib, Certificates: mib}

// usualGlobals are those of an empty ConfigMap.
func usualGlobals() model.Globals {
	b := build.New(all.Features(), "nginx.ingress.kubernetes.io")
	g, findings := b.Globals(store.New(store.Settings{}, b.Refer))
	if len(findings) > 0 {
		panic(findings)
	}
	return g
}

func usualProfile() model.Profile { return usualGlobals().Default }

// unlike is the usual profile but for these values.
func unlike(values ...model.ProfileValue) model.Profile { return usualProfile().With(values...) }

func value(name string, number int64) model.ProfileValue {
	return model.ProfileValue{Name: name, Number: number}
}

// by asks backends in that way.
func by(protocol model.Protocol, tls bool) model.Profile {
	p := usualProfile()
	p.Protocol, p.TLS = protocol, tls
	return p
}

func environment(t testing.TB) nginxconf.Environment {
	t.Helper()
	runDir, err := nginxconf.NewPath("/run/headgate")
	if err != nil {
		t.Fatal(err)
	}
	return nginxconf.Environment{
		Resources: feature.Resources(all.Features()), Directives: feature.Directives(all.Features()),
		RunDir: runDir, HealthPath: runDir, AccessLog: runDir, HTTPPort: 80, HTTPSPort: 443, Workers: 2,
	}
}
