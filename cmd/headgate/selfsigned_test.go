package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestSelfSignedNames: the objects' names by the flags and by the namespace of the pod.
func TestSelfSignedNames(t *testing.T) {
	for _, c := range []struct {
		service, secret                 string
		wantService, wantSecret, inside string
	}{
		{"", "", "own/headgate-admission", "own/headgate-admission", "own"},
		{"a/b", "", "a/b", "own/headgate-admission", "own"},
		{"", "c/d", "default/headgate-admission", "c/d", ""},
	} {
		t.Setenv("POD_NAMESPACE", c.inside)
		s := selfSignedOptions{webhookService: c.service, webhookSecret: c.secret}.selfSignedSettings(ownNamespace(types.NamespacedName{}))
		if s.Service.String() != c.wantService || s.Secret.String() != c.wantSecret {
			t.Errorf("%+v: %v, %v", c, s.Service, s.Secret)
		}
	}
}
