package streamvalue

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/model"
)

// FuzzParse: for any text, the entry is refused, or it names a Service and a port as Kubernetes
// has them, and says the same when it is written again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"shop/db:5432", "shop/db:sql", "a/b:80:PROXY", "a/b:80::PROXY", "a/b:1:proxy:PROXY", "a/b:80:x", "a/b:80:::", " a/b:65535 ", "a:b", "/b:1", "a/b:0"} {
		f.Add(true, text, text)
		f.Add(false, text, "5432")
	}
	f.Fuzz(func(t *testing.T, tcp bool, text, key string) {
		protocol := model.UDP
		if tcp {
			protocol = model.TCP
		}
		if port, err := Port(key); err == nil && port == 0 {
			t.Errorf("%q is port 0", key)
		}
		v, err := Parse(protocol, text)
		if err != nil {
			return
		}
		for _, label := range []string{v.Service.Namespace, v.Service.Name} {
			if problems := validation.IsDNS1123Label(label); len(problems) > 0 {
				t.Errorf("%q names %q: %v", text, label, problems)
			}
		}
		if !tcp && (v.ProxyIn || v.ProxyOut) {
			t.Errorf("%q has the PROXY protocol over UDP", text)
		}
		parts := []string{v.Service.String(), v.Port, "", ""}
		for i, is := range []bool{v.ProxyIn, v.ProxyOut} {
			if is {
				parts[2+i] = proxy
			}
		}
		again, err := Parse(protocol, strings.Join(parts, ":"))
		if v.Ignored = ""; err != nil || again != v {
			t.Errorf("%q is read as %+v, and %q as %+v: %v", text, v, strings.Join(parts, ":"), again, err)
		}
	})
}
