package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/finding/nearest"
	"github.com/headgate/headgate/internal/ingressnginx"
)

// maxSuggestions is how many names of an object are compared with those that
// are known: a tenant may write thousands.
const maxSuggestions = 50

// UnknownAnnotations are the findings for annotations of our prefix that no
// feature has.
func (r *Reader) UnknownAnnotations(ing *networkingv1.Ingress) []finding.Finding {
	var fs []finding.Finding
	suggestions := 0
	for _, whole := range slices.Sorted(maps.Keys(ing.Annotations)) {
		if f, old := r.oldPrefix(ing, whole); old {
			fs = append(fs, f)
			continue
		}
		name, ours := strings.CutPrefix(whole, r.prefix+"/")
		if !ours || r.Schema.Known(whole) {
			continue
		}
		code, message := finding.UnknownAnnotation, "unknown annotation"
		a, known := ingressnginx.Lookup(name)
		reason, refused := ingressnginx.RefusedAnnotation(name)
		switch {
		case known && a.Status != ingressnginx.Removed && a.AsksForNothing(ing.Annotations[whole]):
			continue
		case refused:
			code, message = finding.NotSupported, reason
		case r.Schema.HasKey(name):
			message = "unknown annotation: it is a key of the ConfigMap"
		case suggestions < maxSuggestions:
			suggestions++
			if near := nearest.Name(name, r.names); near != "" {
				message += fmt.Sprintf(" (did you mean %q?)", near)
			}
		}
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(ing), Field: whole, Code: code, Message: message, Effect: "it has no effect",
		})
	}
	return fs
}

// explainUnknownKeys says of unknown keys what became of them in ingress-nginx, or which
// one may be meant.
func (r *Reader) explainUnknownKeys(problems []feature.Problem) {
	suggestions := 0
	for i := range problems {
		p := &problems[i]
		reason, refused := ingressnginx.RefusedKey(p.Field)
		switch {
		case p.Code != finding.UnknownKey:
		case refused:
			p.Message = reason
		case r.Schema.Known(r.prefix + "/" + p.Field):
			p.Message = "unknown key: it is an annotation"
		case suggestions < maxSuggestions:
			suggestions++
			if near := nearest.Name(p.Field, r.keys); near != "" {
				p.Message += fmt.Sprintf(" (did you mean %q?)", near)
			}
		}
	}
}

// oldPrefix is the finding for an annotation of the prefix that ingress-nginx had
// at first. Other controllers have names of that prefix too: only those of
// ingress-nginx count, and those that do not stand under our prefix as well.
func (r *Reader) oldPrefix(ing *networkingv1.Ingress, whole string) (finding.Finding, bool) {
	name, ok := strings.CutPrefix(whole, ingressnginx.OldPrefix+"/")
	if _, known := ingressnginx.Lookup(name); !ok || !known || r.prefix == ingressnginx.OldPrefix {
		return finding.Finding{}, false
	}
	ours := r.prefix + "/" + name
	if _, both := ing.Annotations[ours]; both {
		return finding.Finding{}, false
	}
	return finding.Finding{
		Object: spec.ObjectName(ing), Field: whole, Code: finding.OldPrefix,
		Message: fmt.Sprintf("the prefix must be %s (--annotations-prefix): use %s", r.prefix, ours),
		Effect:  "it has no effect",
	}, true
}
