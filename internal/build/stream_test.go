package build_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build/streamvalue"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

func streamText(s model.Stream) string {
	text := fmt.Sprintf("%s to %s/%s port %s\n", s.Name(), s.Namespace, s.Service, s.ServicePort)
	if s.ProxyIn {
		text += "expects the PROXY protocol\n"
	}
	if s.ProxyOut {
		text += "speaks the PROXY protocol\n"
	}
	for _, e := range s.Endpoints {
		text += e.String() + "\n"
	}
	if len(s.Endpoints) == 0 {
		text += "no endpoints\n"
	}
	return text
}

// FuzzStream: for any text of an entry, it is served or there is a finding, and what is
// served is what the entry names.
func FuzzStream(f *testing.F) {
	for _, value := range []string{
		"shop/db:5432", "shop/db:5432:PROXY", "shop/db:5432::PROXY", "shop/db:5432:PROXY:PROXY:", "shop/db:sql", "shop/db", "db:5432", ":", "/:",
		"shop/db:0", "shop/db:65536", "shop/db:-1", "a/b/c:1", "shop/db:5432:proxy:x", " shop/db:5432\n", "shop/db:5432:\x00", "[::1]:80",
	} {
		f.Add("9000", value, true)
		f.Add("9000", value, false)
	}
	for _, key := range []string{"0", "80", "65535", "65536", "-1", "+1", "09", "1e3", "", "९", " 80"} {
		f.Add(key, "shop/db:5432", true)
	}
	f.Fuzz(func(t *testing.T, key, value string, tcp bool) {
		protocol, port := model.TCP, corev1.ProtocolTCP
		if !tcp {
			protocol, port = model.UDP, corev1.ProtocolUDP
		}
		s := newStore([]metav1.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: protocol}, Data: map[string]string{key: value}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{Name: "sql", Port: 5432, Protocol: port}},
			}},
		})
		built, fs := newBuilder().Unit(unit.Stream.Key(model.StreamName(protocol, key)), s)
		for _, f := range fs {
			if f.Object == "" || f.Field == "" || f.Message == "" || f.Effect == "" || strings.ContainsAny(f.Message, "\n\x00") {
				t.Errorf("%q: %q has the finding %+v", key, value, f)
			}
		}
		if built.Model == nil {
			if len(fs) == 0 {
				t.Errorf("%q: %q is not served, and nothing says why", key, value)
			}
			return
		}
		m := built.Model.(model.Stream)
		parsed, err := streamvalue.Parse(protocol, value)
		if err != nil || fmt.Sprint(m.Port) != key || m.Port == 80 || m.Namespace != "shop" || m.Service != "db" || m.ProxyIn != parsed.ProxyIn ||
			!tcp && (m.ProxyIn || m.ProxyOut) {
			t.Errorf("%q: %q is served as %+v", key, value, m)
		}
	})
}
