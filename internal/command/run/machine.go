package run

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/lua"
)

// A machine is what this process has of the machine: an NGINX that can be started, or only test its configuration,
// and the directory that it runs in.
type machine struct {
	process   *nginx.Process
	dir       *rundir.Dir
	env       nginxconf.Environment
	accessLog *nginx.AccessLog
}

// close gives it back. NGINX must have ended.
func (m *machine) close() {
	// There is nothing to do about a directory that can't be given back.
	_ = m.dir.Close()
	m.accessLog.Close()
}

// machine prepares NGINX for its start.
func (o program) machine(ctx context.Context, log *slog.Logger) (*machine, error) {
	accessLog, err := nginx.OpenAccessLog(os.Stdout)
	if err != nil {
		return nil, err
	}
	m := &machine{accessLog: accessLog}
	if m.process, m.dir, m.env, err = o.prepare(ctx, accessLog, log); err != nil {
		accessLog.Close()
		return nil, err
	}
	return m, nil
}

// prepare checks the machine and prepares NGINX for its start.
func (o program) prepare(ctx context.Context, accessLog *nginx.AccessLog, log *slog.Logger) (process *nginx.Process, dir *rundir.Dir, env nginxconf.Environment, err error) {
	var threads []string
	for _, pool := range feature.Resources(all.Features()).Threads {
		threads = append(threads, pool.Name.String())
	}
	capabilities, err := nginx.Discover(ctx, threads...)
	if err != nil {
		return nil, nil, env, err
	}
	capabilities.Has = slices.Concat(capabilities.Has, o.limitStoreCapability(), collectorCapability())
	path, err := o.makeRunDirectory()
	if err != nil {
		return nil, nil, env, err
	}
	dir, err = rundir.Open(path)
	if err != nil {
		return nil, nil, env, err
	}
	// In the image, /etc/nginx/nginx.conf is a link to this name.
	if name := os.Getenv("HEADGATE_NGINX_CONF_LINK"); name != "" {
		if err := dir.LinkConf(name); err != nil {
			log.Warn("the configuration is only in the run directory", "directory", dir.Path(), "error", err)
		}
	}
	modules, err := lua.Files(all.Features())
	if err != nil {
		return nil, nil, env, err
	}
	if err := dir.WriteLua(modules); err != nil {
		return nil, nil, env, err
	}
	env, err = o.environment(capabilities, dir, accessLog)
	if err != nil {
		return nil, nil, env, err
	}
	process = nginx.New(nginx.Options{
		Capabilities: capabilities, Dir: dir, AccessLog: accessLog, Flags: option.FlagsOf(o.Listening()), Log: log,
	})
	log.Info("starting", "release", o.build.Version, "commit", o.build.Commit(), "nginx", process.Capabilities().Version)
	return process, dir, env, nginx.CheckPorts([]netip.AddrPort{o.HealthAddress()}, option.FlagsOf(o.Listening()))
}

func (o program) environment(capabilities nginx.Capabilities, dir *rundir.Dir, accessLog *nginx.AccessLog) (nginxconf.Environment, error) {
	env := nginxconf.Environment{
		Resources: feature.Resources(all.Features()), Directives: feature.Directives(all.Features()),
		HTTP2Directive: capabilities.HTTP2Directive,
		IPv6:           hasIPv6(),
		Passthrough:    o.Objects.Passthrough,
		HTTPPort:       nginxconf.Port(o.HTTPPort),
		HTTPSPort:      nginxconf.Port(o.HTTPSPort),

		DefaultServerPort: nginxconf.Port(o.DefaultServerPort), StatusPort: nginxconf.Port(o.StatusPort),

		Workers:   runtime.GOMAXPROCS(0),
		OpenFiles: openFiles(),
		Backlog:   backlog(),
		Debug:     o.DebugsNGINX(),
	}
	var errs []error
	path := func(text string) nginxconf.Path {
		p, err := nginxconf.NewPath(text)
		errs = append(errs, err)
		return p
	}
	env.RunDir = path(dir.Path())
	env.HealthPath = path(o.HealthCheckPath)
	env.AccessLog, env.PipedLog = path(accessLog.Path()), accessLog.Piped()
	if capabilities.Authorities != "" {
		env.Authorities = path(capabilities.Authorities)
	}
	for _, module := range capabilities.Modules {
		env.Modules = append(env.Modules, path(module))
	}
	word := func(text string) nginxconf.Word {
		w, err := nginxconf.NewWord(text)
		errs = append(errs, err)
		return w
	}
	env.User, env.Group = word(dir.Worker().User), word(dir.Worker().Group)
	return env, errors.Join(errs...)
}

func hasIPv6() bool {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// openFiles is the limit of open files for NGINX: that of this process, but not more
// than a worker needs for all its connections and their backends.
func openFiles() int {
	const most = 1 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Max, most))
}

// backlog is the kernel's limit of queues of incoming connections.
func backlog() int {
	const usual = 511
	text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 1 {
		return usual
	}
	return n
}
