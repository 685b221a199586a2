package image

import (
	"testing"

	"github.com/headgate/headgate/internal/image/rootfs"
)

// TestPrograms: ingress-nginx's programs have their names, and the controller only is started
// with the capability for ports.
func TestPrograms(t *testing.T) {
	t.Parallel()
	tree, err := programs(Input{Headgate: []byte("headgate"), Start: []byte("start")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]rootfs.File{
		"/nginx-ingress-controller": {Content: []byte("start"), Ports: true},
		"/dbg":                      {Content: []byte("headgate")},
		"/wait-shutdown":            {Content: []byte("headgate")},
		"/kube-webhook-certgen":     {Content: []byte("headgate")},
		"/headgate":                 {Content: []byte("headgate")},
		"/usr/bin/headgate":         {Content: []byte("headgate")},
	} {
		got, err := tree.Open(name)
		if err != nil || string(got.Content) != string(want.Content) || got.Ports != want.Ports || got.Mode != 0o755 {
			t.Errorf("%s: %q, capability %v, mode %o, %v", name, got.Content, got.Ports, got.Mode, err)
		}
	}
}
