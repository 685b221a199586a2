package proxying_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestBodyFile: of a body that is larger than the buffer, NGINX logs that it went
// to a file.
func TestBodyFile(t *testing.T) {
	t.Parallel()
	const logged = "a client request body is buffered to a temporary file"
	slowly := headgatetest.Service("slow") + headgatetest.Endpoints("slow", slow(t))
	for name, c := range map[string]struct {
		annotations []string
		file        bool
	}{
		"default":   {nil, true},
		"too small": {[]string{"client-body-buffer-size: 60k"}, true},
		"enough":    {[]string{"client-body-buffer-size: 100k"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: slowly + headgatetest.Ingress("a", "a.test", "/", "slow", c.annotations...)})
			g.Do(headgatetest.Request{Method: "POST", Host: "a.test", Body: bytes.NewReader(make([]byte, 100_000))}).WantStatus(t, 200)
			file := func() bool { return strings.Contains(g.Log.String(), logged) }
			if c.file {
				// The log may come later than the answer.
				headgatetest.Eventually(t, "a file is used", file)
			} else if file() {
				t.Error("a file was used")
			}
		})
	}
}
