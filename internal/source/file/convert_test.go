package file

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
)

func endpointsOf(service string, ips ...string) string {
	text := "---\napiVersion: v1\nkind: Endpoints\nmetadata: {name: " + service + "}\nsubsets:\n"
	for _, ip := range ips {
		text += "- {addresses: [{ip: " + ip + "}], ports: [{port: 80}]}\n"
	}
	return text
}

func sliceOf(name, service string) string {
	return fmt.Sprintf("---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\n"+
		"metadata: {name: %s, labels: {kubernetes.io/service-name: %s}}\n", name, service)
}

// Endpoints count while a Service has no EndpointSlice, whatever comes first.
func TestEndpointsStandIn(t *testing.T) {
	f := start(t, "a.yaml", endpointsOf("web", "10.0.0.1", "10.0.0.2"))
	f.want("web:0:IPv4=", "web:1:IPv4=")
	f.put("a.yaml", endpointsOf("web", "10.0.0.1"))
	f.want("-web:1:IPv4")
	f.put("b.yaml", sliceOf("s", "web")+sliceOf("t", "web"))
	f.want("s=", "t=", "-web:0:IPv4")
	// A change of Endpoints that don't count is none.
	f.put("a.yaml", endpointsOf("web", "10.0.0.9"))
	f.put("b.yaml", sliceOf("t", "web"))
	f.want("-s")
	f.put("b.yaml", sliceOf("t", "other"))
	f.want("t=", "web:0:IPv4=")
	f.put("c.yaml", sliceOf("s", "web"))
	f.want("s=", "-web:0:IPv4")
	f.remove("c.yaml")
	f.want("-s", "web:0:IPv4=")
	f.remove("a.yaml")
	f.want("-web:0:IPv4")
}

func TestEndpointsBehindSlices(t *testing.T) {
	f := start(t, "a.yaml", endpointsOf("web", "10.0.0.1")+sliceOf("s", "web"), "b.yaml", sliceOf("t", "api"), "c.yaml", endpointsOf("api", "10.0.0.1"))
	f.want("s=", "t=")
	f.remove("b.yaml")
	f.want("-t", "api:0:IPv4=")
}

func oldIngress(name, service string) string {
	return "---\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: " + name + "}\nspec: {backend: {serviceName: " + service + ", servicePort: 80}}\n"
}

// An object of an old version is told of, with its new form; not one that does
// not count.
func TestOldVersionsAreTold(t *testing.T) {
	f := start(t, "a.yaml", oldIngress("web", "one"))
	f.want("web=")
	f.wantProblem("a.yaml:2: ingress/default/web: extensions/v1beta1 is an old version")
	f.put("a.yaml", config("c", "1")+oldIngress("web", "one"))
	f.want("c=1")
	f.put("a.yaml", config("c", "2")+oldIngress("web", "two"))
	f.want("c=2", "web=")
	f.wantProblem("name: two")
	f.put("b.yaml", oldIngress("web", "three"))
	f.wantProblem("b.yaml:2: Ingress default/web is already defined in a.yaml:9; this one is not used")
	f.remove("a.yaml")
	f.want("-c", "web=")
	f.wantProblem("a.yaml is fine again")
	f.wantProblem("name: three")
	f.put("b.yaml", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\n")
	f.want("web=")
	f.wantProblem("b.yaml is fine again")
}

// An object that stands twice is no reason to keep others.
func TestTwiceInAFileKeepsNothing(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1")+config("b", "1"))
	f.want("a=1", "b=1")
	f.put("a.yaml", config("a", "1")+config("a", "2"))
	f.want("-b")
	f.wantProblem("a.yaml:9: ConfigMap default/a is already defined in line 2; this one is not used")
	f.put("a.yaml", config("a", "1"))
	f.wantProblem("a.yaml is fine again")
}

func TestTexts(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: |\n    Grüße\n\n    x\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
	windows := strings.ReplaceAll(text, "\n", "\r\n")
	wide := func(order binary.AppendByteOrder) string {
		out := order.AppendUint16(nil, 0xfeff)
		for _, u := range utf16.Encode([]rune(windows)) {
			out = order.AppendUint16(out, u)
		}
		return string(out)
	}
	want := string(describe(t, []byte(text)))
	for name, other := range map[string]string{
		"Windows": windows, "byte order mark": "\xef\xbb\xbf" + windows,
		"little endian": wide(binary.LittleEndian), "big endian": wide(binary.BigEndian),
	} {
		if got := string(describe(t, []byte(other))); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestCutList(t *testing.T) {
	const text = "kind: List\nitems:\n  # first\n  - a: b\n    - c\n\n  -\n    d: |\n     - e\n# last\nmetadata: {}\n"
	l, ok := (document{text: []byte(text), line: 10, last: 20}).cutList()
	if !ok || string(l.frame.text) != "kind: List\nitems: []\nmetadata: {}\n" || len(l.items) != 2 {
		t.Fatalf("%v: %d items in %q", ok, len(l.items), l.frame.text)
	}
	for i, want := range []document{
		{[]byte("  - a: b\n    - c\n\n"), 13, 15}, {[]byte("  -\n    d: |\n     - e\n# last\n"), 16, 19},
	} {
		if got := l.items[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("item %d: %q in %d to %d, want %q in %d to %d", i, got.text, got.line, got.last, want.text, want.line, want.last)
		}
	}
}

func TestTabs(t *testing.T) {
	for _, text := range []string{"a:\n\tb: c\n", "a:\n- b\n\t- c\n", "kind: List\nitems:\n- a:\n  \tb: c\n", "a: |\n  x\nb:\n \tc: d\n"} {
		flaws := decode([]byte("---\n" + text)).flaws
		line := 2 + strings.Count(text[:strings.Index(text, "\t")], "\n")
		if len(flaws) != 1 || flaws[0].line != line || !strings.Contains(flaws[0].reason, "a tab stands in the indentation") {
			t.Errorf("%q: %v, want a tab in line %d", text, flaws, line)
		}
	}
}

// FuzzList compares a list that is read item by item with the same one read
// as a whole.
func FuzzList(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, ok := (document{text: data}).cutList(); !ok || len(split(data)) != 1 {
			return
		}
		d := split(data)[0]
		l, ok := d.cutList()
		if !ok {
			return
		}
		parts, flaws, ok := l.values()
		whole, f := d.value()
		if !ok || len(flaws) > 0 || f != nil || whole.json == nil {
			return
		}
		all, flaws := whole.items(0)
		if len(flaws) > 0 || len(all) != len(parts) {
			t.Fatalf("%q\n%d parts\n%d as a whole, %v", data, len(parts), len(all), flaws)
		}
		for i := range all {
			a, b := strings.ReplaceAll(string(all[i].json), "\n", ""), strings.ReplaceAll(string(parts[i].json), "\n", "")
			if a != b || all[i].header != parts[i].header || all[i].start() != parts[i].start() {
				t.Fatalf("%q\npart  %s in %d\nwhole %s in %d", data, b, parts[i].start(), a, all[i].start())
			}
		}
	})
}

func TestJSONParts(t *testing.T) {
	const text = ` {"a\"b" : "\\", "c":[1,{"d":"]"}] ,"e":-1.5e3,"f":{},"g":"\"}\"" , "h":null}`
	want := []string{`"a\"b"`, `"\\"`, `"c"`, `[1,{"d":"]"}]`, `"e"`, `-1.5e3`, `"f"`, `{}`, `"g"`, `"\"}\""`, `"h"`, `null`}
	var got []string
	for _, s := range jsonParts([]byte(text), 1) {
		got = append(got, string(s.of([]byte(text))))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
