package explain

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
)

// refusals are values that some annotation or another refuses.
var refusals = []string{"!", "-1", "99999999999999999999", "a b;c", "/x", "~("}

// TestRefusedIsNeverInForce: an annotation whose value is refused is never listed as in force.
func TestRefusedIsNeverInForce(t *testing.T) {
	t.Parallel()
	refused := 0
	for _, s := range feature.AllSettings(all.Features()) {
		annotation := s.Spec().Annotation
		if annotation == "" {
			continue
		}
		for i, value := range refusals {
			folder := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d", annotation, i))
			writeManifests(t, folder, fmt.Appendf(nil, `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
  annotations: {nginx.ingress.kubernetes.io/%s: %q}
spec:
  rules:
  - host: a.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
`, annotation, value))
			var e report.Explanation
			if err := json.Unmarshal([]byte(runExplain(t, folder, "http://a.test/ -o json")), &e); err != nil {
				t.Fatalf("%s: %v", annotation, err)
			}
			bad := false
			for _, f := range e.Findings {
				bad = bad || f.Code == finding.InvalidValue && strings.HasSuffix(f.Field, "/"+annotation) && strings.HasPrefix(f.Message, "invalid value")
			}
			if !bad {
				continue
			}
			refused++
			for _, p := range e.Policies {
				if p.Setting == annotation && p.From == string(feature.FromAnnotation) && !p.Rejected && !p.Denies && p.Idle == "" {
					t.Errorf("%s: %q is refused, and in force: %+v", annotation, value, p)
				}
			}
			break
		}
	}
	if refused < 60 {
		t.Errorf("only %d annotations refuse a value", refused)
	}
}
