package all_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// directories are those of features with another name. The further parts of snippets have no
// golden files of their own: snippet_steps reads the settings of all.
var directories = map[string]string{
	"worker_process": "worker", "status_page": "nginxstatus", "client_location": "geoip", "error_messages": "errorlog",
	"request_log": "accesslog", "known_requests": "requestheaders", "tcp_udp": "stream", "client_certificate": "clientcert",
	"snippet_steps": "snippet", "snippet_access": "", "snippet_bypass": "", "snippet_settings": "", "snippet_effects": "",
}

// TestGolden holds each feature to the golden files of its directory: one program for all
// of them, since linking takes longer than the cases.
//
//	go test ./internal/feature/all -run TestGolden/cors -update
func TestGolden(t *testing.T) {
	compared := map[string]bool{}
	for _, f := range all.Features() {
		directory, other := directories[f.Name]
		if !other {
			directory = strings.ReplaceAll(f.Name, "_", "")
		}
		if directory == "" {
			continue
		}
		compared[directory] = true
		t.Run(directory, func(t *testing.T) {
			featuretest.Golden(t, f, filepath.Join("..", directory, "testdata"))
		})
	}
	files, err := filepath.Glob("../*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !compared[filepath.Base(filepath.Dir(filepath.Dir(file)))] {
			t.Errorf("%s belongs to no feature", file)
		}
	}
}
