package build_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/store"
)

// demanding has routes, and with the key the process, need what NGINX may lack.
func demanding() feature.Feature {
	need := feature.Setting[bool]{Annotation: "need", Parse: feature.Bool}
	process := feature.Setting[bool]{Key: "process", Parse: feature.Bool, Scope: feature.ScopeProcess}
	return feature.Feature{
		Name: "demanding", Settings: []feature.AnySetting{need, process},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if need.Get(v) && !v.Has(feature.HybridGroups) {
				out.Deny(need, finding.MissingCapability, "lacking")
			}
		},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.HTTP2 = v.Has(feature.HybridGroups)
			if process.Get(v) && !out.Process.HTTP2 {
				out.Reject(process, finding.MissingCapability, "lacking")
			}
		},
	}
}

func TestLacking(t *testing.T) {
	ingress := callingIngress("a", "a.example", "/", "")
	ingress.Annotations = map[string]string{"p/need": "true"}
	options := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "options"}, Data: map[string]string{"process": "true"}}
	for _, lacks := range []bool{false, true} {
		for _, withOptions := range []bool{false, true} {
			var lacking []feature.Capability
			if lacks {
				lacking = append(lacking, feature.HybridGroups)
			}
			builder := build.New([]feature.Feature{demanding()}, "p", lacking...)
			settings := store.Settings{IngressClass: "nginx", Classless: true}
			settings.ConfigMap.Namespace, settings.ConfigMap.Name = "shop", "options"
			s := store.New(settings, builder.Refer)
			s.Apply(ingress, false)
			if withOptions {
				s.Apply(options, false)
			}
			reported := func(fs []finding.Finding, object, field string) bool {
				return slices.ContainsFunc(fs, func(f finding.Finding) bool {
					return f.Object == object && f.Field == field && f.Code == finding.MissingCapability
				})
			}
			host, _, fs := builder.Host("a.example", s)
			if host.Routes[0].Denied != lacks || reported(fs, "ingress/shop/a", "p/need") != lacks {
				t.Errorf("lacking %v: the route %+v, findings %v", lacks, host.Routes[0], fs)
			}
			globals, fs := builder.Globals(s)
			if globals.Process.HTTP2 == lacks || reported(fs, "configmap/shop/options", "process") != (lacks && withOptions) {
				t.Errorf("lacking %v: the process %+v, findings %v", lacks, globals.Process, fs)
			}
		}
	}
}
