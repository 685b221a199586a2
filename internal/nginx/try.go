package nginx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// tryTimeout bounds one try, which takes some hundredths of a second.
	tryTimeout = 20 * time.Second
	// maxTried bounds how many results are remembered.
	maxTried = 1000
)

// tried has the results of tries. The same lines are tried once.
type tried struct {
	mu      sync.Mutex
	results map[string]error
}

// A Trial is lines of the http block and of one location in a folder, and the files that
// they name there. The names must say what is in the files.
type Trial struct {
	Lines func(folder string) (http, location []string)
	Files map[string][]byte
}

// Try tests lines alone, in a configuration that has nothing else. It returns nil, a
// *ConfError, or the reason why it can't say.
func (p *Process) Try(t Trial) error {
	http, location := t.Lines("")
	key := strings.Join(http, "\n") + "\n\n" + strings.Join(location, "\n")
	p.tried.mu.Lock()
	result, known := p.tried.results[key]
	p.tried.mu.Unlock()
	if known {
		return result
	}
	err := p.try(t)
	var rejected *ConfError
	if err != nil && !errors.As(err, &rejected) {
		return err
	}
	p.tried.keep(key, err)
	return err
}

// keep remembers a result, instead of any other where there are too many.
func (t *tried) keep(key string, result error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.results == nil {
		t.results = map[string]error{}
	}
	if len(t.results) >= maxTried {
		for other := range t.results {
			delete(t.results, other)
			break
		}
	}
	t.results[key] = result
}

func (p *Process) try(t Trial) (err error) {
	dir, err := os.MkdirTemp("", "headgate-try-")
	if err != nil {
		return fmt.Errorf("try a configuration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var conf strings.Builder
	for _, file := range p.options.Capabilities.Modules {
		fmt.Fprintf(&conf, "load_module %q;\n", file)
	}
	fmt.Fprintf(&conf, "pid pid;\nevents {}\nhttp {\n access_log off;\n")
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, " %s_temp_path %s;\n", kind, kind)
	}
	http, location := t.Lines(dir)
	fmt.Fprintf(&conf, "%s\nserver {\nlisten unix:%s/socket;\nlocation / {\n%s\n}\n}\n}\n", strings.Join(http, "\n"), dir, strings.Join(location, "\n"))
	file := filepath.Join(dir, "nginx.conf")
	files := map[string][]byte{file: []byte(conf.String())}
	for name, content := range t.Files {
		files[filepath.Join(dir, name)] = content
	}
	for name, content := range files {
		if err := writeFile(name, content); err != nil {
			return fmt.Errorf("try a configuration: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	err = run(ctx, p.options.Capabilities.Binary, file, p.options.AccessLog, "-p", dir, "-t", "-q")
	var rejected *ConfError
	if errors.As(err, &rejected) {
		// The folder has another name each time.
		return &ConfError{Reason: strings.ReplaceAll(rejected.Reason, dir+"/", "")}
	}
	return err
}
