package nearest

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	names := []string{"http-port", "https-port", "v", "watch-namespace", "watch-namespace-selector"}
	for name, want := range map[string]string{
		"http-prt": "http-port", "htps-port": "https-port", "http-port": "http-port", "watch-namepsace": "watch-namespace",
		"watch_namespace_selector": "watch-namespace-selector", "port": "", "x": "", "": "",
		"http-port" + strings.Repeat("t", 2): "http-port", strings.Repeat("http-port", 10): "",
	} {
		if got := Name(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
