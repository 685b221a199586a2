package wire_test

import (
	"bufio"
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/wire"
)

const prefix = "nginx.ingress.kubernetes.io"

// What is built of every annotation and key that the golden files of features have is the
// same behind the wire: it is packed into the same bytes, and asks for the same profiles.
func TestEverySettingArrives(t *testing.T) {
	cases, pair := settingsOfFeatures(t), pkitest.New(t).Issue("shop.test")
	if len(cases) < 1500 {
		t.Fatalf("only %d cases were read", len(cases))
	}
	builder := build.New(all.Features(), prefix)
	profiles := map[model.Profile]bool{}
	for i, c := range cases {
		if testing.Short() && i%10 > 0 {
			continue
		}
		s := newStore(builder, c, pair)
		keys := s.All()
		if len(c.keys) == 0 {
			// Nothing else depends on annotations.
			keys = []unit.Key{unit.Host.Key("shop.test"), unit.Name.Key("shop.test"), unit.Backend.Key("shop/web/80")}
		}
		for _, key := range keys {
			built, _ := builder.Unit(key, s)
			if built.Model == nil {
				continue
			}
			got := through(t, built)
			wantSame(t, c.text, built, got)
			if h, is := got.Model.(model.Host); is {
				for _, r := range h.Routes {
					profiles[r.Profile] = true
				}
			}
		}
	}
	if len(profiles) < 50 && !testing.Short() {
		t.Errorf("there are %d profiles: the cases are not read as they should", len(profiles))
	}
}

// A setting is a line of a golden file: annotations and keys.
type setting struct {
	text              string
	annotations, keys map[string]string
}

func settingsOfFeatures(t *testing.T) (list []setting) {
	files, err := filepath.Glob("../../feature/*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			s := setting{text: lines.Text(), annotations: map[string]string{}, keys: map[string]string{}}
			for part := range strings.SplitSeq(lines.Text(), " | ") {
				kind, rest, _ := strings.Cut(part, " ")
				name, value, ok := strings.Cut(rest, ": ")
				if unquoted, err := strconv.Unquote(value); err == nil {
					value = unquoted
				}
				switch {
				case ok && kind == "annotation":
					s.annotations[prefix+"/"+name] = value
				case ok && kind == "key":
					s.keys[name] = value
				}
			}
			if len(s.annotations)+len(s.keys) > 0 {
				list = append(list, s)
			}
		}
	}
	return list
}

func newStore(builder *build.Builder, c setting, pair pkitest.Pair) *store.Store {
	s := store.New(store.Settings{
		IngressClass: "nginx", ControllerClass: "k8s.io/ingress-nginx", Classless: true,
		ConfigMap:   types.NamespacedName{Namespace: "headgate", Name: "options"},
		TCPServices: types.NamespacedName{Namespace: "headgate", Name: "tcp"},
	}, builder.Refer)
	exact, port := networkingv1.PathTypePrefix, int32(8080)
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	for _, o := range []metav1.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: "options"}, Data: c.keys},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: "tcp"}, Data: map[string]string{"9000": "shop/web:80"}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: []byte(pair.Chain), corev1.TLSPrivateKeyKey: []byte(pair.Key), "ca.crt": []byte(pair.Chain), "auth": []byte("a:$apr1$x$y\n")},
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		},
		&networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: c.annotations, CreationTimestamp: metav1.Unix(1700000000, 0)},
			Spec: networkingv1.IngressSpec{
				TLS: []networkingv1.IngressTLS{{Hosts: []string{"shop.test"}, SecretName: "tls"}},
				Rules: []networkingv1.IngressRule{{Host: "shop.test", IngressRuleValue: networkingv1.IngressRuleValue{
					HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &exact, Backend: backend}}},
				}}},
			},
		},
	} {
		s.Apply(o, false)
	}
	return s
}

// through sends a unit.
func through(t *testing.T, b unit.Built) unit.Built {
	t.Helper()
	resources, err := wire.Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Decode(b.Key, resources[0].Bytes, finder(resources[1:]))
	if err != nil {
		t.Fatalf("%v: %s", err, resources[0].Bytes)
	}
	again, err := wire.Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	if again[0].Version != resources[0].Version {
		t.Errorf("%s is another one when it is sent on:\n%s\n%s", b.Key, resources[0].Bytes, again[0].Bytes)
	}
	return got
}

func finder(list []wire.Resource) wire.Finder {
	return func(key unit.Key) ([]byte, bool) {
		for _, r := range list {
			if r.Key == key {
				return r.Bytes, true
			}
		}
		return nil, false
	}
}

// wantSame compares all but the values of policies, which are compared as they are packed.
func wantSame(t *testing.T, of string, want, got unit.Built) {
	t.Helper()
	a, packed := want.Pack()
	b, _ := got.Pack()
	if packed && (a.Version != b.Version || a.Key != b.Key) {
		t.Errorf("%s: %s is packed into\n%s\nwant\n%s", of, want.Key, b.Payload, a.Payload)
	}
	if diff := cmp.Diff(want, got, exactly); diff != "" {
		t.Errorf("%s: %s differs:\n%s", of, want.Key, diff)
	}
}

// exactly looks into everything but the values of policies.
var exactly = cmp.Options{
	cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) }),
	cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}, model.Profile{}),
	cmp.Exporter(func(of reflect.Type) bool { return strings.Contains(of.PkgPath(), "headgate") }),
	cmp.FilterPath(func(p cmp.Path) bool {
		last, is := p.Last().(cmp.StructField)
		return is && (last.Name() == "Value" && p.Index(-2).Type() == reflect.TypeFor[model.Policy]() || last.Name() == "Name" && p.Index(-2).Type() == reflect.TypeFor[model.Trace]())
	}, cmp.Ignore()),
}

// A type of the model with a form of its own can be encoded, or its value would be lost.
func TestFormsAreEncoded(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type, string)
	look = func(of reflect.Type, path string) {
		if seen[of] {
			return
		}
		seen[of] = true
		pointer := reflect.PointerTo(of)
		asText := of.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
		asJSON := of.Implements(reflect.TypeFor[json.Marshaler]()) && pointer.Implements(reflect.TypeFor[json.Unmarshaler]())
		switch {
		case asText || asJSON || pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		case of.Kind() == reflect.Slice:
			look(of.Elem(), path+"[]")
		case of.Kind() == reflect.Struct:
			for i := range of.NumField() {
				field := of.Field(i)
				if !field.IsExported() {
					t.Errorf("%s: %s has the field %s, which is not encoded", path, of, field.Name)
					continue
				}
				if field.Tag != "" || field.Anonymous && field.Type.Kind() != reflect.Struct {
					t.Errorf("%s: the field %s of %s is not encoded by its name", path, field.Name, of)
				}
				look(field.Type, path+"."+field.Name)
			}
		case of.Kind() == reflect.Map, of.Kind() == reflect.Interface, of.Kind() == reflect.Pointer, of.Kind() == reflect.Func:
			t.Errorf("%s: a %s is not plain data", path, of)
		}
	}
	for _, m := range models {
		look(reflect.TypeOf(m), reflect.TypeOf(m).String())
	}
}

// models are those of units that are sent.
var models = map[unit.Kind]any{
	unit.Globals: model.Globals{}, unit.DefaultCertificate: model.Certificate{}, unit.OCSPResponse: model.OCSPResponse{}, unit.Backend: model.Backend{},
	unit.Host: model.Host{}, unit.Name: model.Name{}, unit.Patterns: model.NamePatterns{}, unit.Stream: model.Stream{},
}

// A newer control has fields that are not known here. They do no harm until one of them is used.
func TestNewFieldsCountOnceTheyAreUsed(t *testing.T) {
	type added struct {
		On   bool
		List []string
	}
	// route and host have a field more than those of the model, deeper in it.
	type route struct {
		Path  string
		Added added
	}
	type host struct {
		Name   string
		Routes []route
	}
	unused := map[unit.Kind][]any{unit.Host: {host{"a.test", []route{{Path: "/"}}}}}
	used := map[unit.Kind][]any{unit.Host: {host{"a.test", []route{{"/", added{On: true}}}}, host{"a.test", []route{{"/", added{List: []string{}}}}}}}
	for kind, m := range models {
		isEmbedded := func(f reflect.StructField) bool { return f.Anonymous } // What is in it is visible.
		newer := append(slices.DeleteFunc(reflect.VisibleFields(reflect.TypeOf(m)), isEmbedded), reflect.StructField{Name: "Added", Type: reflect.TypeFor[added]()})
		value := reflect.New(reflect.StructOf(newer)).Elem()
		unused[kind] = append(unused[kind], value.Interface())
		value.FieldByName("Added").Field(0).SetBool(true)
		used[kind] = append(used[kind], value.Interface())
	}
	read := func(kind unit.Kind, m any) (string, error) {
		sent, err := wire.Encode(unit.Built{Key: kind.Key("a.test"), Model: m})
		if err != nil {
			t.Fatal(err)
		}
		_, err = wire.Decode(sent[0].Key, sent[0].Bytes, finder(nil))
		return string(sent[0].Bytes), err
	}
	for kind := range models {
		for _, m := range unused[kind] {
			if text, err := read(kind, m); err != nil {
				t.Errorf("%v: %s", err, text)
			}
		}
		for _, m := range used[kind] {
			if text, err := read(kind, m); err == nil || !strings.Contains(err.Error(), `unknown field "Added"`) {
				t.Errorf("%s is read: %v", text, err)
			}
		}
	}
}

// What is not known may be a guard, and what is missing may be one as well.
func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	key := unit.Host.Key("a.test")
	nothing := func(unit.Key) ([]byte, bool) { return nil, false }
	for _, text := range []string{
		`{"Model":{"Name":"a.test","Guard":{}}}`,
		`{"Model":{"Name":"a.test","Routes":[{"Path":"/","Guard":true}]}}`,
		`{"Model":{"Name":"a.test","Routes":[{"Path":"/","Policies":[{"Feature":"x","Value":1,"Guard":true}]}]}}`,
		`{"Model":{"Name":"a.test","Routes":[{"Path":"/","Profile":"http tls guard"}]}}`,
		`{"Model":{"Name":"a.test","Routes":[{"Path":"/","Profile":"spdy"}]}}`,
		`{"Model":{"Name":"a.test","Routes":[{"Path":"/","Kind":3}]}}`,
		`{"Model":{"Name":"a.test","Routes":[{"Path":"/","Variant":{"Check":4}}]}}`,
		`{"Model":{"Name":"a.test"},"Guard":1}`,
		`{"Model":`,
	} {
		if b, err := wire.Decode(key, []byte(text), nothing); err == nil {
			t.Errorf("%s is %+v", text, b.Model)
		}
	}
	for _, text := range []string{
		`{"Model":{"Name":"a.test","Routes":[{"Path":"/","Contents":[{"Name":"c"}]}]}}`,
		`{"Model":{"Name":"a.test","Routes":[]},"Certificates":[{"Hash":"c","Secret":"a/b"}]}`,
	} {
		if _, err := wire.Decode(key, []byte(text), nothing); !errors.Is(err, wire.ErrMissing) {
			t.Errorf("%s: %v, want that something is missing", text, err)
		}
	}
	if _, err := wire.Decode(unit.Refusal.Key("x"), []byte("{}"), nothing); err == nil {
		t.Error("a refusal is decoded")
	}
}
