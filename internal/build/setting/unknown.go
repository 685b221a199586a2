package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/ingressnginx"
)

// maxSuggestions is how many names of an Ingress are compared with those that
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
		switch a, known := ingressnginx.Lookup(name); {
		case known && a.Status == ingressnginx.Removed:
			code, message = finding.NotSupported, "ingress-nginx removed this annotation in an earlier version, and Headgate does not have it"
		case known && a.AsksForNothing(ing.Annotations[whole]):
			continue
		case known:
			code, message = finding.NotImplemented, "Headgate does not implement this annotation of ingress-nginx"
		case suggestions < maxSuggestions:
			suggestions++
			if near := r.nearest(name); near != "" {
				message += fmt.Sprintf(" (did you mean %q?)", near)
			}
		}
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(ing), Field: whole, Code: code, Message: message, Effect: "it has no effect",
		})
	}
	return fs
}

// oldPrefix is the finding for an annotation of the prefix that ingress-nginx had
// at first. Other controllers have names of that prefix too: only those of
// ingress-nginx count, and those that do not stand under our prefix as well.
func (r *Reader) oldPrefix(ing *networkingv1.Ingress, whole string) (finding.Finding, bool) {
	const old = "ingress.kubernetes.io"
	name, ok := strings.CutPrefix(whole, old+"/")
	if _, known := ingressnginx.Lookup(name); !ok || !known || r.prefix == old {
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

// nearest is the known annotation that a misspelt name is most like, empty if it
// is like none.
func (r *Reader) nearest(name string) string {
	const maxLength = 64
	if len(name) > maxLength {
		return ""
	}
	best, least := "", 1+min(3, len(name)/3)
	for _, candidate := range r.names {
		if d := editDistance(name, candidate, least); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// editDistance is how many bytes have to be added, left out, changed or swapped
// with the next one to make one text of the other, or limit if that is less.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	last, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			next[j] = min(next[j-1]+1, row[j]+1, row[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], last[j-2]+1)
			}
		}
		last, row, next = row, next, last
	}
	return min(row[len(b)], limit)
}
