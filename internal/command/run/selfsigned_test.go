package run

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/command/option"
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
		s := option.SelfSigned{WebhookService: c.service, WebhookSecret: c.secret}.SelfSignedSettings(ownNamespace(types.NamespacedName{}))
		if s.Service.String() != c.wantService || s.Secret.String() != c.wantSecret {
			t.Errorf("%+v: %v, %v", c, s.Service, s.Secret)
		}
	}
}
