package backendprotocol_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestVerificationIsNeverLost: a route that verifies its backend answers 502 or 503 where it can't,
// after any change of the Secret and by either protocol, though other routes keep unverified
// connections to the same endpoint. It answers again with a good Secret.
func TestVerificationIsNeverLost(t *testing.T) {
	t.Parallel()
	backend, other, one := headgatetest.NewKeyPair(t, "backend", "backend.test"), headgatetest.NewKeyPair(t, "other", "backend.test"), headgatetest.NewKeyPair(t, "one")
	verified := func(protocol string) []string {
		return []string{"backend-protocol: " + protocol, "proxy-ssl-secret: default/one", "proxy-ssl-verify: on", "proxy-ssl-name: backend.test", "proxy-ssl-server-name: on"}
	}
	good := secret("one", one, backend.Certificate)
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Workers: 1, Manifests: headgatetest.Service("a") +
		headgatetest.Endpoints("a", startTLS(t, backend)) + good + ingress("https", verified("HTTPS")...) + ingress("grpcs", verified("GRPCS")...) +
		ingress("unverified-https", "backend-protocol: HTTPS") + ingress("unverified-grpcs", "backend-protocol: GRPCS")})
	statuses := func() (list [2]int) {
		for i, protocol := range []string{"https", "grpcs"} {
			hears(t, g, "http", "unverified-"+protocol+".test", "/")
			list[i] = g.Get(protocol+".test", "/").Status
		}
		return list
	}
	isGood := func() bool { return statuses() == [2]int{200, 200} }
	if !isGood() {
		t.Fatal("a good Secret does not do")
	}
	// The CA is in a file, in a directory that is closed to other users.
	folder := filepath.Join(g.RunDir.Path(), directive.Files)
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the CA: %v, %v", info, err)
	}
	for what, change := range map[string]func(){
		"deleted":        func() { g.Remove(good) },
		"without a CA":   func() { g.Put(secret("one", one, "")) },
		"no certificate": func() { g.Put(secret("one", one, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")) },
		"another CA":     func() { g.Put(secret("one", one, other.Certificate)) },
	} {
		change()
		closed := func() bool {
			s := statuses()
			return s[0] >= 502 && s[0] <= 503 && s[1] >= 502 && s[1] <= 503
		}
		headgatetest.Eventually(t, what+": the routes are closed", closed)
		for range 20 {
			if !closed() {
				t.Fatalf("%s: a route answers %v", what, statuses())
			}
		}
		g.Put(good)
		headgatetest.Eventually(t, what+", and good again", isGood)
	}
}
