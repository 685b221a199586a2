package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// rival is the namespace of the attacker. The victim's is that of the benchmark.
const rival = "team-b"

// How the victim is measured, and how much it and others have.
const (
	window      = 8 * time.Second
	victimHosts = 2000
	// askEvery is the time between two of the victim's requests.
	askEvery = 4 * time.Millisecond
)

// An attack is what one namespace writes, and its clients send, to the cost of
// the others.
type attack struct {
	// finding is its number in docs/security.md.
	finding, about string
	// manifests of the attacker, by file. They are there before the measurement under
	// attack begins, and ready reports when they are served, unless it is nil.
	manifests func(*arena) map[string]string
	ready     func(context.Context, *arena) error
	// loads are what its clients send.
	loads []load
	// write makes the i-th change of the attacker's, one each time.
	write func(ctx context.Context, a *arena, i int) error
	each  time.Duration
	// lasts is for how long the victim is measured, window if it is 0.
	lasts time.Duration
	// begin and end surround the measurement.
	begin, end func(*arena) error
	// check is what the victim must still have, if it is not only time.
	check func(context.Context, *arena) error
	// stopped: the controller does not run, so there are no changes to measure.
	stopped bool
	// measure replaces the usual measurement, if it is not nil.
	measure func(ctx context.Context, a *arena, attacked bool) (figures, error)
}

// Figures are what the victim notices, in milliseconds and bytes.
type figures struct {
	P50, P99 float64
	// Change is the median time of a change of the victim's, of Changes.
	Change  float64
	Changes int
	// Memory is that of all workers, and Workers their number.
	Memory  int64
	Workers int
	// Lost of Requests had no answer, or a wrong one.
	Requests, Lost int
}

// An outcome is what one attack costs with one build.
type outcome struct {
	idle, attacked figures
	// answers are what the attacker's clients got, by status.
	answers map[int]int
	faults  []string
}

// An arena is a Headgate with a victim and an attacker.
type arena struct {
	*headgate
	stage *stage
	// plain answers at once, and other is the server of startOther.
	plain, other int
	mutex        sync.Mutex
	sockets      []net.Conn
	// quiet is a WebSocket of the victim's.
	quiet net.Conn
}

// measureAttack has one build under one attack.
func (s *stage) measureAttack(ctx context.Context, program string, one attack) (outcome, error) {
	var out outcome
	at, err := s.place(fmt.Sprintf("attack-%d", len(s.processes)))
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(at.folder)
	if err := writeFolder(at.folder, victimHosts, s.backend, false, exactRouting); err != nil {
		return out, err
	}
	other, err := startOther()
	if err != nil {
		return out, err
	}
	defer other.Close()
	builds := *s
	builds.headgate = program
	h, err := builds.startHeadgate(ctx, at)
	s.processes = builds.processes
	if err != nil {
		return out, err
	}
	defer h.process.stop()
	a := &arena{headgate: h, stage: s, plain: s.backend, other: other.Addr().(*net.TCPAddr).Port}
	defer a.closeSockets()
	if err := a.prepare(ctx); err != nil {
		return out, err
	}
	measure := one.measure
	if measure == nil {
		measure = func(ctx context.Context, a *arena, _ bool) (figures, error) {
			return a.measure(ctx, cmp.Or(one.lasts, window), !one.stopped)
		}
	}
	if out.idle, err = measure(ctx, a, false); err != nil {
		return out, fmt.Errorf("at rest: %w", err)
	}
	if err := a.underAttack(ctx, one, &out, measure); err != nil {
		return out, fmt.Errorf("under attack: %w", err)
	}
	out.compare(one)
	return out, nil
}

// prepare has the worker hold what the victim's clients ask for, and gives the victim a
// WebSocket and large uploads.
func (a *arena) prepare(ctx context.Context) error {
	err := a.put("socket.yaml", ingressTo(namespace, "socket", "socket.example.com", "other", "")+servicePort(namespace, "other", a.other)+
		ingressTo(namespace, "large", uploadHost, "other", "  creationTimestamp: 2010-01-01T00:00:00Z\n"+annotations("proxy-body-size", "20m")))
	if err != nil {
		return err
	}
	deadline := time.Now().Add(startTimeout)
	for {
		status, err := a.upload(ctx)
		if status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the victim's upload: %d, %v", status, err)
		}
		time.Sleep(quiet)
	}
	if a.quiet, err = a.openSocket("socket.example.com"); err != nil {
		return err
	}
	return a.touchAll(ctx, victimHosts)
}

const uploadHost = "large.example.com"

// upload sends the victim 3 MB, and returns the status of the answer.
func (a *arena) upload(ctx context.Context) (int, error) {
	body := io.MultiReader(strings.NewReader(strings.Repeat("x", 3<<20))) // without a length
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+local(a.port)+"/", body)
	if err != nil {
		return 0, err
	}
	r.Host = uploadHost
	response, err := a.web.Do(r)
	if err != nil {
		return 0, err
	}
	response.Body.Close()
	return response.StatusCode, nil
}

func (a *arena) underAttack(ctx context.Context, one attack, out *outcome, measure func(context.Context, *arena, bool) (figures, error)) (err error) {
	if one.manifests != nil {
		for file, text := range one.manifests(a) {
			if err := a.put(file, text); err != nil {
				return err
			}
		}
	}
	if one.ready != nil {
		if err := one.ready(ctx, a); err != nil {
			return err
		}
	}
	if one.begin != nil {
		if err := one.begin(a); err != nil {
			return err
		}
	}
	attacking, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	answers := newTally()
	for _, l := range one.loads {
		all.Go(func() { l.run(attacking, a, answers) })
	}
	if one.write != nil {
		all.Go(func() {
			for i := 0; attacking.Err() == nil; i++ {
				if err := one.write(attacking, a, i); err != nil && attacking.Err() == nil {
					out.faults = append(out.faults, "the attacker's change: "+err.Error())
					return
				}
				select {
				case <-attacking.Done():
				case <-time.After(one.each):
				}
			}
		})
	}
	var broken error
	all.Go(func() { broken = a.keepOpen(attacking) })
	time.Sleep(time.Second) // What is dear at first only is over.
	out.attacked, err = measure(ctx, a, true)
	if err == nil && one.check != nil {
		if fault := one.check(ctx, a); fault != nil {
			out.faults = append(out.faults, fault.Error())
		}
	}
	stop()
	if one.end != nil {
		err = errors.Join(err, one.end(a))
	}
	all.Wait()
	out.answers = answers.counts
	if broken != nil {
		out.faults = append(out.faults, "the victim's WebSocket: "+broken.Error())
	}
	return err
}

// measure asks for one of the victim's hosts, and has the victim make changes.
func (a *arena) measure(ctx context.Context, lasts time.Duration, changes bool) (figures, error) {
	var f figures
	var times, changed []float64
	ending := time.Now().Add(lasts)
	var all sync.WaitGroup
	var problem error
	all.Go(func() {
		c := a.client()
		defer c.close()
		for time.Now().Before(ending) && ctx.Err() == nil {
			begin := time.Now()
			got, err := c.get(ctx, middleOf(victimHosts))
			f.Requests++
			if err != nil || got.status != http.StatusOK {
				f.Lost++
			}
			times = append(times, milliseconds(time.Since(begin)))
			time.Sleep(askEvery)
		}
	})
	all.Go(func() {
		c := a.client()
		defer c.close()
		for i := 0; changes && time.Now().Before(ending) && ctx.Err() == nil; i++ {
			took, ok, err := a.change(ctx, c, i)
			if err != nil {
				problem = err
				return
			}
			changed = append(changed, milliseconds(took))
			if !ok {
				return
			}
		}
	})
	all.Go(func() {
		for time.Now().Before(ending) && ctx.Err() == nil {
			a.weigh(&f)
			time.Sleep(lasts / 20)
		}
	})
	all.Wait()
	if err := errors.Join(problem, ctx.Err()); err != nil {
		return f, err
	}
	f.P50, f.P99 = percentile(times, 50), percentile(times, 99)
	if f.Changes = len(changed); f.Changes > 0 {
		f.Change = percentile(changed, 50)
	}
	return f, nil
}

func middleOf(hosts int) string { return hostName(hosts / 2) }

// weigh keeps the most that the workers had in memory. Those that end meanwhile do not
// count.
func (a *arena) weigh(f *figures) {
	all, err := workers(filepath.Join(a.runDir, "nginx.pid"))
	if err != nil {
		return
	}
	var total int64
	for _, pid := range all {
		if memory, err := privateMemory(pid); err == nil {
			total += memory
		}
	}
	f.Memory, f.Workers = max(f.Memory, total), max(f.Workers, len(all))
}

// change returns the time from the rename of a new host's manifest to its first 200, and
// removes the host again. It is false if one of both did not show.
func (a *arena) change(ctx context.Context, c *client, i int) (time.Duration, bool, error) {
	name := fmt.Sprintf("new-%05d", i)
	host := name + ".example.com"
	begin, err := a.rename(name+".yaml", ingress(name, host, ""))
	if err != nil {
		return 0, false, err
	}
	_, late := await(ctx, c.expect(ctx, host, http.StatusNotFound, isOK))
	took := time.Since(begin)
	if err := os.Remove(filepath.Join(a.folder, name+".yaml")); err != nil {
		return 0, false, err
	}
	if late == nil {
		_, late = await(ctx, c.expect(ctx, host, http.StatusOK, func(got answer) bool { return got.status == http.StatusNotFound }))
	}
	time.Sleep(quiet)
	return took, late == nil, ctx.Err()
}

// put writes a manifest.
func (a *arena) put(file, text string) error {
	_, err := a.rename(file, text)
	return err
}

// rename writes a manifest and renames it into its place, and returns when.
func (a *arena) rename(file, text string) (time.Time, error) {
	waiting := filepath.Join(a.folder, file+".new")
	if err := os.WriteFile(waiting, []byte(text), 0o644); err != nil {
		return time.Time{}, err
	}
	begin := time.Now()
	return begin, os.Rename(waiting, filepath.Join(a.folder, file))
}

// answers waits until a host answers with a status.
func (a *arena) answers(ctx context.Context, host string, status int) error {
	c := a.client()
	defer c.close()
	deadline := time.Now().Add(2 * startTimeout)
	for {
		got, err := c.get(ctx, host)
		if err == nil && got.status == status {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s answers %d and not %d", host, got.status, status), err, ctx.Err())
		}
		time.Sleep(quiet)
	}
}

// startOther runs a server that reads bodies, and speaks WebSocket: it sends
// back what it gets.
func startOther() (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: startTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err == nil {
			_, _ = io.Copy(conn, both)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	return listener, nil
}

// openSocket opens a WebSocket, which is held until the attack is over.
func (a *arena) openSocket(host string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", local(a.port), requestTimeout)
	if err != nil {
		return nil, err
	}
	a.mutex.Lock()
	a.sockets = append(a.sockets, conn)
	a.mutex.Unlock()
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		return nil, err
	}
	// The header of a 101 and nothing after it.
	var header []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(header), "\r\n\r\n"); header = append(header, one...) {
		if _, err := io.ReadFull(conn, one); err != nil {
			return nil, err
		}
	}
	if !strings.HasPrefix(string(header), "HTTP/1.1 101") {
		conn.Close()
		return nil, fmt.Errorf("no WebSocket: %.40s", header)
	}
	return conn, nil
}

// keepOpen uses the victim's WebSocket until ctx ends, more often than NGINX closes idle
// ones.
func (a *arena) keepOpen(ctx context.Context) error {
	for {
		if err := echoes(a.quiet); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// echoes reports whether a WebSocket still works.
func echoes(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "still there"); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, len("still there")))
	return err
}

func (a *arena) closeSockets() {
	for _, conn := range a.sockets {
		conn.Close()
	}
}

// Bounds of what others may notice.
const (
	maxTimes   = 2.0
	maxLatency = 20.0 // ms
	maxChange  = 50.0 // ms
	maxMemory  = 1.5
)

func (o *outcome) compare(one attack) {
	fault := func(bad bool, format string, args ...any) {
		if bad {
			o.faults = append(o.faults, fmt.Sprintf(format, args...))
		}
	}
	at, rest := o.attacked, o.idle
	fault(at.P50 > maxTimes*rest.P50, "p50 is %.1f times that at rest", at.P50/rest.P50)
	fault(at.P50 > maxLatency, "p50 is above %.0f ms", maxLatency)
	fault(at.Lost > 0, "%d of %d requests lost", at.Lost, at.Requests)
	fault(at.Change > maxChange, "changes take more than %.0f ms", maxChange)
	fault(!one.stopped && one.measure == nil && at.Changes == 0, "no change was served")
	fault(float64(at.Memory) > maxMemory*float64(rest.Memory), "memory is %.1f times that at rest (%d workers)", float64(at.Memory)/float64(rest.Memory), at.Workers)
}

// measureAttacks makes all attacks, or those of a finding, on one build or two, and
// prints a table.
func measureAttacks(ctx context.Context, s *stage, only, against string, to io.Writer) error {
	programs := []string{s.headgate}
	if against != "" {
		absolute, err := filepath.Abs(against)
		if err != nil {
			return err
		}
		programs = slices.Insert(programs, 0, absolute)
	}
	fmt.Fprintln(to, attackHeading(len(programs)))
	for _, one := range attacks() {
		if only != "" && one.finding != only {
			continue
		}
		var outcomes []outcome
		for _, program := range programs {
			fmt.Fprintf(os.Stderr, "%s, %s: %s\n", one.finding, one.about, program)
			o, err := s.measureAttack(ctx, program, one)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", one.finding, one.about, err)
			}
			outcomes = append(outcomes, o)
		}
		fmt.Fprintln(to, attackRow(one, outcomes))
	}
	return nil
}
