package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A proxyKind is a proxy that users can pick for this work: how files configure it, and how
// it runs.
type proxyKind struct {
	name string
	// program is what bench/peers/install builds or installs, empty for what the stage has.
	program string
	// files are its configuration, by path in its directory.
	files func(s *stage, p *runningProxy) (map[string]string, error)
	// command starts it.
	command func(s *stage, p *runningProxy) []string
	// reload has it use new files, if it does not watch them itself.
	reload func(ctx context.Context, s *stage, p *runningProxy) error
	// beside: a new file gets its name within its own folder, which Headgate sees at once.
	beside bool
	// noGRPC: it can't send calls on without TLS.
	noGRPC bool
}

// A runningProxy is one of them. Templates of configurations use the exported fields.
type runningProxy struct {
	kind *proxyKind
	// Dir has its files.
	Dir                string
	HTTP, HTTPS, Admin int
	// Hosts are served, each by requests to all Endpoints in turn; GRPCHost by calls to GRPC.
	Hosts, Endpoints []string
	GRPCHost, GRPC   string
	// TLS is what Headgate's nginx.conf says of it.
	TLS  []string
	pair keyPair
	// program is the path of the kind's program.
	program string
	process *process
	// written are its files.
	written map[string]string
}

// grpcHost is where calls go.
const grpcHost = "calls.example.com"

// peerHosts are the names of the first n hosts.
func peerHosts(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = hostName(i)
	}
	return names
}

// findProgram returns the path of what bench/peers/install has built or installed.
func findProgram(name string) (string, error) {
	folder := os.Getenv("HEADGATE_PEERS")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the folder of peers: %w", err)
		}
		folder = filepath.Join(cache, "headgate-peers")
	}
	for _, file := range []string{filepath.Join(folder, name), filepath.Join("/usr/sbin", name)} {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("bench/peers/install has not built or installed %s", name)
}

// startProxy starts one on the core of the worker and waits until it serves the first host.
// What is set in p is how it is configured.
func (s *stage) startProxy(ctx context.Context, kind *proxyKind, p runningProxy) (*runningProxy, error) {
	fail := func(err error) (*runningProxy, error) { return nil, fmt.Errorf("start %s: %w", kind.name, err) }
	p.kind, p.written = kind, map[string]string{}
	name := fmt.Sprintf("peer-%d", len(s.processes))
	p.Dir = filepath.Join(s.dir, name)
	ports, err := freePorts(3)
	if err != nil {
		return fail(err)
	}
	p.HTTP, p.HTTPS, p.Admin = ports[0], ports[1], ports[2]
	if kind.program != "" {
		if p.program, err = findProgram(kind.program); err != nil {
			return fail(err)
		}
	}
	if err := errors.Join(os.Mkdir(p.Dir, 0o711), os.Mkdir(filepath.Join(p.Dir, "new"), 0o711)); err != nil {
		return fail(err)
	}
	apply, err := p.prepare(s)
	if err != nil {
		return fail(err)
	}
	if err := apply(); err != nil {
		return fail(err)
	}
	if p.process, err = s.start(name, "taskset", append(s.onProxyCore(&p), kind.command(s, &p)...)...); err != nil {
		return fail(err)
	}
	c := p.client()
	defer c.close()
	err = p.process.until(ctx, "serving", func() bool {
		got, err := c.get(ctx, p.Hosts[0])
		return err == nil && isOK(got)
	})
	if err != nil {
		return fail(err)
	}
	return &p, nil
}

// onProxyCore are the arguments of taskset that lead a command to the core of the proxy. A
// program in Go gets one thread for its code, as NGINX has one worker, and keeps its files in
// its folder.
func (s *stage) onProxyCore(p *runningProxy) []string {
	return []string{"-c", strconv.Itoa(workerCore), "env", "GOMAXPROCS=1", "HOME=" + p.Dir, "XDG_DATA_HOME=" + p.Dir, "XDG_CONFIG_HOME=" + p.Dir}
}

// run runs a command of the proxy's on its core.
func (p *runningProxy) run(ctx context.Context, s *stage, command ...string) error {
	out, err := exec.CommandContext(ctx, "taskset", append(s.onProxyCore(p), command...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s: %w: %s", command[0], err, out)
	}
	return nil
}

// prepare writes what differs of the configuration next to it. apply puts it in use, and takes no
// longer than the proxy's own way of doing that.
func (p *runningProxy) prepare(s *stage) (apply func() error, err error) {
	files, err := p.kind.files(s, p)
	if err != nil {
		return nil, err
	}
	var names [][2]string
	for name, text := range files {
		if old, there := p.written[name]; there && old == text {
			continue
		}
		file := filepath.Join(p.Dir, name)
		waiting := filepath.Join(p.Dir, "new", filepath.Base(name))
		if p.kind.beside {
			waiting = file + ".new"
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o711), os.WriteFile(waiting, []byte(text), 0o600)); err != nil {
			return nil, err
		}
		names = append(names, [2]string{waiting, file})
	}
	p.written = files
	return func() error {
		for _, name := range names {
			if err := os.Rename(name[0], name[1]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// addHost has the proxy serve one more host. It returns the time from the new files being in
// place to the first answer.
func (p *runningProxy) addHost(ctx context.Context, s *stage, host string) (time.Duration, error) {
	p.Hosts = append(p.Hosts, host)
	apply, err := p.prepare(s)
	if err != nil {
		return 0, err
	}
	c := p.client()
	defer c.close()
	begin := time.Now()
	if err := apply(); err != nil {
		return 0, err
	}
	if p.kind.reload != nil {
		if err := p.kind.reload(ctx, s, p); err != nil {
			return 0, err
		}
	}
	_, err = await(ctx, c.expect(ctx, host, http.StatusNotFound, isOK))
	return time.Since(begin), err
}

func (p *runningProxy) client() *client { return &client{dial: loopback, port: p.HTTP} }

// touchAll sends a request to every host, since some proxies make a host only then.
func (p *runningProxy) touchAll(ctx context.Context) error {
	c := p.client()
	defer c.close()
	for _, host := range p.Hosts {
		if err := c.until(ctx, host, http.StatusOK); err != nil {
			return fmt.Errorf("%s: %w", p.kind.name, err)
		}
	}
	return nil
}

// family are its processes: the first one and all of its descendants.
func (p *runningProxy) family() ([]int, error) {
	parents, err := parentsOfAll()
	if err != nil {
		return nil, err
	}
	return descendants(p.process.cmd.Process.Pid, parents), nil
}

// parentsOfAll are the parents of all processes.
func parentsOfAll() (map[int]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // ended meanwhile
		}
		// The name of the program, in parentheses, may contain spaces.
		_, behind, _ := strings.Cut(string(stat), ") ")
		words := strings.Fields(behind)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(words) < 2 {
			continue
		}
		if parents[pid], err = strconv.Atoi(words[1]); err != nil {
			return nil, fmt.Errorf("read the parent of %d: %w", pid, err)
		}
	}
	return parents, nil
}

// descendants are a process and all that come from it.
func descendants(first int, parents map[int]int) []int {
	all := []int{first}
	for i := 0; i < len(all); i++ {
		for pid, parent := range parents {
			if parent == all[i] {
				all = append(all, pid)
			}
		}
	}
	return all
}

// used is the CPU time of all its processes.
func (p *runningProxy) used() (sum time.Duration, err error) {
	pids, err := p.family()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		one, err := cpuOfAll(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// memory is what its processes have together, in bytes, with a share of what they have in
// common, and without files, which the kernel can drop.
func (p *runningProxy) memory() (sum int64, err error) {
	pids, err := p.family()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		one, err := ownMemory(string(text))
		if err != nil {
			return 0, fmt.Errorf("read the memory of %d: %w", pid, err)
		}
		sum += one
	}
	return sum, nil
}

// ownMemory reads anonymous and shared memory from a smaps_rollup.
func ownMemory(text string) (sum int64, err error) {
	found := 0
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 3 && (words[0] == "Pss_Anon:" || words[0] == "Pss_Shmem:") {
			kib, failed := strconv.ParseInt(words[1], 10, 64)
			err = cmp.Or(err, failed)
			sum += kib << 10
			found++
		}
	}
	if err == nil && found != 2 {
		err = errors.New("it has no Pss_Anon and Pss_Shmem")
	}
	return sum, err
}
