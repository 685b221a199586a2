package nginx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A ConfError is a configuration that NGINX rejects.
type ConfError struct {
	// File and Line are the location, if NGINX gives one. Otherwise File is empty.
	File   string
	Line   int
	Reason string
}

func (e *ConfError) Error() string {
	if e.File == "" {
		return "NGINX rejects the configuration: " + e.Reason
	}
	return fmt.Sprintf("NGINX rejects the configuration: %s:%d: %s", e.File, e.Line, e.Reason)
}

// Test tests a configuration file with NGINX. It returns nil, a *ConfError, or the
// reason why the test failed. The test does not run Lua: mistakes there show when
// NGINX is started or reloaded.
func (p *Process) Test(ctx context.Context, conf string) error {
	return run(ctx, p.options.Capabilities.Binary, conf, p.options.AccessLog, "-p", p.options.Dir.Path(), "-t", "-q")
}

func run(ctx context.Context, binary, conf string, log *AccessLog, args ...string) error {
	cmd := exec.CommandContext(ctx, binary, append(args, "-c", conf, "-e", "stderr")...)
	cmd.Env = environment()
	cmd.WaitDelay = time.Second
	log.pass(cmd)
	var output bytes.Buffer
	cmd.Stderr = &output
	err := cmd.Run()
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if ctx.Err() != nil || !errors.As(err, &exit) || !exit.Exited() {
		return fmt.Errorf("run %s with %s: %w", binary, conf, errors.Join(err, ctx.Err()))
	}
	return confError(output.String())
}

// confError finds the reason in the output of nginx -t. It begins on the first line
// with a serious level, and may continue until the next line with a level.
func confError(output string) *ConfError {
	var reason []string
	for text := range strings.Lines(output) {
		l := parseLine(strings.TrimRight(text, "\n"))
		if reason != nil && (l.level != "" || strings.HasPrefix(l.text, "nginx: ")) {
			break
		}
		serious := l.level == "emerg" || l.level == "alert" || l.level == "crit" || l.level == "error"
		if serious || reason != nil {
			reason = append(reason, strings.TrimSpace(l.text))
		}
	}
	if reason == nil {
		reason = []string{strings.TrimSpace(output)}
	}
	all := strings.Join(reason, "; ")
	if at := regexp.MustCompile(`^(.*) in (\S+):(\d+)$`).FindStringSubmatch(all); at != nil {
		if line, err := strconv.Atoi(at[3]); err == nil {
			return &ConfError{File: at[2], Line: line, Reason: at[1]}
		}
	}
	return &ConfError{Reason: all}
}

// environment is the controller's without the variable that makes NGINX inherit
// listening sockets.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "NGINX=") })
}
