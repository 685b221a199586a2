package manifest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// readBare reads a ConfigMap whose data has values that are not strings, such as true without
// quotes, as if they were in quotes. Without the object, all options would have their defaults, and
// lists of addresses would let everyone pass. The problem is nil if that does not help.
func (v value) readBare() (metav1.Object, *Problem) {
	data, _ := newText(v).find([]step{{name: "data"}})
	var text []byte
	var names []string
	done, line := 0, 0
	for _, p := range jsonParts(v.json, data.value.from) {
		if bare := p.value.of(v.json); bare[0] != '"' && bare[0] != '{' && string(bare) != "null" {
			if names = append(names, strconv.Quote(p.name)); len(names) == 1 {
				line = v.lineAt(int64(p.at))
			}
			text = append(text, v.json[done:p.value.from]...)
			// A string can't fail to become JSON.
			quoted, _ := json.Marshal(string(bare))
			text = append(text, quoted...)
			done = p.value.to
		}
	}
	o := &corev1.ConfigMap{}
	if len(names) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(append(text, v.json[done:]...), o) != nil {
		return o, nil
	}
	return o, &Problem{
		Line: line, Reason: fmt.Sprintf("the value of %s in data must be a string: write it in quotes", strings.Join(names, ", ")),
		Effect: "it is read as if it were in quotes, but a cluster rejects the object",
	}
}
