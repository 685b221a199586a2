package manifest

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	oldv1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// renew converts an object of an old version to the current one, as the API
// server did, and returns false for all others.
func renew(o metav1.Object) (metav1.Object, bool) {
	switch o := o.(type) {
	case *oldv1.Ingress:
		return renewIngress(o), true
	case *oldv1.IngressClass:
		return &networkingv1.IngressClass{ObjectMeta: o.ObjectMeta, Spec: renewClass(o.Spec)}, true
	}
	return o, false
}

func renewClass(old oldv1.IngressClassSpec) networkingv1.IngressClassSpec {
	spec := networkingv1.IngressClassSpec{Controller: old.Controller}
	if p := old.Parameters; p != nil {
		spec.Parameters = &networkingv1.IngressClassParametersReference{
			APIGroup: p.APIGroup, Kind: p.Kind, Name: p.Name, Scope: p.Scope, Namespace: p.Namespace,
		}
		if p.Scope == nil {
			spec.Parameters.Scope = new(networkingv1.IngressClassParametersReferenceScopeCluster)
		}
	}
	return spec
}

// renewIngress leaves out the status, which is not read.
func renewIngress(old *oldv1.Ingress) *networkingv1.Ingress {
	o := &networkingv1.Ingress{ObjectMeta: old.ObjectMeta, Spec: networkingv1.IngressSpec{
		IngressClassName: old.Spec.IngressClassName,
	}}
	if old.Spec.Backend != nil {
		o.Spec.DefaultBackend = new(renewBackend(*old.Spec.Backend))
	}
	for _, t := range old.Spec.TLS {
		o.Spec.TLS = append(o.Spec.TLS, networkingv1.IngressTLS{Hosts: t.Hosts, SecretName: t.SecretName})
	}
	for _, r := range old.Spec.Rules {
		rule := networkingv1.IngressRule{Host: r.Host}
		if r.HTTP != nil {
			rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
			for _, p := range r.HTTP.Paths {
				rule.HTTP.Paths = append(rule.HTTP.Paths, renewPath(p))
			}
		}
		o.Spec.Rules = append(o.Spec.Rules, rule)
	}
	return o
}

func renewPath(old oldv1.HTTPIngressPath) networkingv1.HTTPIngressPath {
	kind := networkingv1.PathTypeImplementationSpecific
	if old.PathType != nil {
		kind = networkingv1.PathType(*old.PathType)
	}
	return networkingv1.HTTPIngressPath{Path: old.Path, PathType: &kind, Backend: renewBackend(old.Backend)}
}

// renewBackend converts a port that is a string to a name, even if it has only
// digits.
func renewBackend(old oldv1.IngressBackend) networkingv1.IngressBackend {
	backend := networkingv1.IngressBackend{Resource: old.Resource}
	port := networkingv1.ServiceBackendPort{Name: old.ServicePort.StrVal, Number: old.ServicePort.IntVal}
	if old.ServiceName != "" || port != (networkingv1.ServiceBackendPort{}) {
		backend.Service = &networkingv1.IngressServiceBackend{Name: old.ServiceName, Port: port}
	}
	return backend
}

// oldVersion is the problem with an object of an old version that became k
// and o.
func oldVersion(h header, k Key, o metav1.Object) *Problem {
	version := networkingv1.SchemeGroupVersion.String()
	return &Problem{
		Object: strings.ToLower(k.Kind) + "/" + strings.TrimPrefix(k.Namespace+"/"+k.Name, "/"),
		Field:  "apiVersion",
		Reason: h.APIVersion + " is an old version of " + k.Kind + "; in " + version + ", the object is:\n" + newForm(version, k.Kind, o),
		Effect: "none: Headgate serves the converted object",
	}
}

// newForm is an object as YAML for a file.
func newForm(version, kind string, o metav1.Object) string {
	// The conversion to JSON and YAML can't fail for these objects.
	plain, _ := json.Marshal(o)
	var all struct {
		Metadata map[string]any
		Spec     any
	}
	_ = yaml.Unmarshal(plain, &all)
	// Fields that a cluster has set do not belong in a file. The creation time
	// stays: it decides between Ingresses.
	for _, name := range []string{"uid", "resourceVersion", "generation", "selfLink"} {
		delete(all.Metadata, name)
	}
	if annotations, ok := all.Metadata["annotations"].(map[string]any); ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			delete(all.Metadata, "annotations")
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	_ = enc.Encode(map[string]any{"apiVersion": version, "kind": kind, "metadata": all.Metadata, "spec": all.Spec})
	return out.String()
}
