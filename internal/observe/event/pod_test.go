package event

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestFilesOfThePod: what is wrong with a file is an Event of the Pod that has it.
func TestFilesOfThePod(t *testing.T) {
	t.Parallel()
	pod := types.NamespacedName{Namespace: "system", Name: "headgate-0"}
	r := New(Settings{Pod: pod})
	if on, ok := r.subjectOf("file/etc/nginx/template/nginx.tmpl"); !ok || on != (subject{podKind, pod}) {
		t.Errorf("%+v, %v", on, ok)
	}
	if on, ok := New(Settings{}).subjectOf("file/x"); ok {
		t.Errorf("without a Pod: %+v", on)
	}
}
