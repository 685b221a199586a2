package file

import (
	"fmt"
	"testing"
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

// Endpoints count while a Service has no EndpointSlice, in either order.
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

// An object of an old version is reported, with its new form, unless an object
// of an earlier file takes precedence.
func TestOldVersionsAreReported(t *testing.T) {
	f := start(t, "a.yaml", oldIngress("web", "one"))
	f.want("web=")
	f.wantProblem("a.yaml:2: ingress/default/web: extensions/v1beta1 is an old version")
	f.put("a.yaml", config("c", "1")+oldIngress("web", "one"))
	f.want("c=1")
	f.put("a.yaml", config("c", "2")+oldIngress("web", "two"))
	f.want("c=2", "web=")
	f.wantProblem("name: two")
	f.put("b.yaml", oldIngress("web", "three"))
	f.wantProblem("b.yaml:2: Ingress default/web is already defined in a.yaml:9; this definition is not used")
	f.remove("a.yaml")
	f.want("-c", "web=")
	f.wantProblem("a.yaml is fine again")
	f.wantProblem("name: three")
	f.put("b.yaml", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\n")
	f.want("web=")
	f.wantProblem("b.yaml is fine again")
}

// An object that is defined twice does not keep other objects.
func TestTwiceInAFileKeepsNothing(t *testing.T) {
	f := start(t, "a.yaml", config("a", "1")+config("b", "1"))
	f.want("a=1", "b=1")
	f.put("a.yaml", config("a", "1")+config("a", "2"))
	f.want("-b")
	f.wantProblem("a.yaml:9: ConfigMap default/a is already defined in line 2; this definition is not used")
	f.put("a.yaml", config("a", "1"))
	f.wantProblem("a.yaml is fine again")
}
