package headgatetest

import "testing"

// Long skips a test that takes seconds where only short ones are asked for, with
// `go test -short`: with a second NGINX, when what the test shows does not depend
// on the version of NGINX.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds, and depends on no version of NGINX")
	}
}
