package basicauth_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Bcrypts of "secret", with cost 12, which takes about 0.2 s, and with costs 10
// and 8, of which each takes a quarter of the one before.
const slowHash = "$2y$12$ELv1i56rvQNQhQCEZoO.du2IkIx242XaSHJ8nVtE8j9aGKC3JZlY2"
const mediumHash = "$2y$10$GtdTJ4Ncz4YfzyJb0nJ6LOcOaU6fnQGXq4406jxf5dAUwW0zyRBj2"
const quickHash = "$2y$08$KMHV2qwqWzTltkm1DjIPbuk2FJFjeXy5FNeP.qFVXJSJDs.VSoL8e"

// Ten slow checks at once, in the only worker, hold up no request of another
// host. In the worker itself they would hold it up as long as they all take.
func TestChecksDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: one(t) + secret("users", "user:"+slowHash) +
		guarded("web", "web.test", "users") + headgatetest.Ingress("open", "open.test", "/", "one")})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		const checks = 10
		var longest, all time.Duration
		// A machine that has no time for this process holds up its requests too,
		// but hardly again and again; checks in the worker hold them up each time.
		for range 3 {
			if longest, all = longestMeanwhile(t, g, checks, http2, scheme); longest <= all/4 {
				return
			}
		}
		t.Errorf("%s, HTTP/2 %v: a request of another host took %v while %d checks took %v", scheme, http2, longest, checks, all)
	})
}

// longestMeanwhile is how long the longest request of another host takes while
// checks are done, and how long these take together.
func longestMeanwhile(t *testing.T, g *headgatetest.Instance, checks int, http2 bool, scheme string) (longest, all time.Duration) {
	t.Helper()
	client := g.NewClient(http2)
	defer client.CloseIdleConnections()
	open := func() time.Duration {
		began := time.Now()
		r, err := g.Try(client, headgatetest.Request{Host: "open.test", Scheme: scheme, HTTP2: http2})
		if err != nil {
			t.Fatal(err)
		}
		r.WantStatus(t, 200)
		return time.Since(began)
	}
	open()
	began := time.Now()
	var group sync.WaitGroup
	var checked atomic.Int64
	for i := range checks {
		group.Go(func() {
			// Over HTTP/2 they are all on one connection.
			r, err := g.Try(client, headgatetest.Request{
				Host: "web.test", Scheme: scheme, HTTP2: http2, Header: basicHeader(fmt.Sprintf("user:wrong %d", i)),
			})
			// On a busy machine a check may wait for a thread in vain.
			if err != nil || r.Status != 401 && r.Status != 503 {
				t.Errorf("status %d, %v", r.Status, err)
			} else if r.Status == 401 {
				checked.Add(1)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		group.Wait()
		close(ended)
	}()
	asked := 0
	for checking := true; checking; asked++ {
		longest = max(longest, open())
		select {
		case <-ended:
			checking = false
		// Otherwise this test itself takes the time of the checks.
		case <-time.After(time.Millisecond):
		}
	}
	all = time.Since(began)
	if checked.Load() == 0 {
		t.Error("no password was checked")
	}
	t.Logf("%s, HTTP/2 %v: %d checks took %v; of %d other requests meanwhile the longest took %v", scheme, http2, checks, all, asked, longest)
	return longest, all
}

// A page makes its browser ask for many things at once, all with one password:
// that is one check.
func TestSamePasswordIsCheckedOnce(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: one(t) + secret("users", "user:"+slowHash) + guarded("web", "web.test", "users")})
	took := func(credentials string, want int) time.Duration {
		began := time.Now()
		if status := try(g, credentials); status != want {
			t.Errorf("%s: status %d, want %d", credentials, status, want)
		}
		return time.Since(began)
	}
	single := took("user:wrong", 401)
	began := time.Now()
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if status := try(g, "user:secret"); status != 200 {
				t.Errorf("status %d", status)
			}
		})
	}
	group.Wait()
	if all := time.Since(began); all > 20*single {
		t.Errorf("100 requests with one password took %v, one check takes %v", all, single)
	}
	// From now on it is known.
	var known []time.Duration
	for range 9 {
		known = append(known, took("user:secret", 200))
	}
	if slices.Sort(known); known[4] > single/2 {
		t.Errorf("with a password that was checked a request took %v, a check takes %v", known[4], single)
	}
	took("user:wrong", 401)
}

// A client that tries too many passwords at once must wait, and other clients
// need not.
func TestOneHostDoesNotTakeAllThreads(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: one(t) + secret("users", "user:"+mediumHash) + secret("others", "user:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/") +
		guarded("web", "web.test", "users") + guarded("other", "other.test", "others")})
	// So many that places do not come free as fast as they are sent.
	const requests, most = 120, 32
	statuses := make(chan int, requests)
	for i := range requests {
		go func() { statuses <- try(g, fmt.Sprintf("user:wrong %d", i)) }()
	}
	counts := map[int]int{}
	for range requests {
		status := <-statuses
		if counts[status]++; status == 503 && counts[503] == 1 {
			// The others are under way or wait their turn.
			get(g, "other.test", "user:secret").WantStatus(t, 200)
		}
	}
	if counts[401]+counts[503] != requests || counts[401] < most || counts[503] == 0 {
		t.Errorf("statuses %v of %d requests", counts, requests)
	}
	headgatetest.Eventually(t, "it is logged", func() bool { return strings.Contains(g.Log.String(), "too many checks are under way") })
	get(g, "web.test", "user:secret").WantStatus(t, 200)
}

// A namespace with many Secrets must wait as well, and others need not.
func TestOneNamespaceDoesNotTakeAllThreads(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	elsewhere := strings.NewReplacer("metadata: {", "metadata: {namespace: elsewhere, ", "metadata:\n", "metadata:\n  namespace: elsewhere\n").
		Replace(one(t) + secret("others", "user:"+quickHash) + guarded("other", "other.test", "others"))
	manifests := one(t) + elsewhere + headgatetest.Config("log-format-upstream: $host $status $msec $request_time")
	// So many that places do not come free as fast as they are sent.
	const secrets, each = 3, 60
	for i := range secrets {
		name := fmt.Sprintf("users%d", i)
		manifests += secret(name, fmt.Sprintf("user%d:%s", i, mediumHash)) + guarded(name, name+".test", name)
	}
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, AccessLog: file, Manifests: manifests})
	counts := map[int]int{}
	// A busy machine may send them one by one.
	for tries := 0; counts[503] == 0 && tries < 3; tries++ {
		clear(counts)
		statuses := make(chan int, secrets*each)
		for i := range secrets * each {
			go func() {
				statuses <- tryHost(g, fmt.Sprintf("users%d.test", i%secrets), fmt.Sprintf("user%d:wrong %d %d", i%secrets, i, tries))
			}()
		}
		for range secrets * each {
			status := <-statuses
			if counts[status]++; status == 503 && counts[503] == 1 {
				get(g, "other.test", "user:wrong").WantStatus(t, 401)
			}
		}
	}
	// On a busy machine some of the 64 may wait for a thread in vain.
	if counts[401]+counts[503] != secrets*each || counts[401] < 40 || counts[503] == 0 {
		t.Fatalf("statuses %v of %d requests", counts, secrets*each)
	}
	// As NGINX has it: this process may have to wait for the machine while checks go on.
	if waited := checkedDuring(t, file, "other.test"); waited > 20 {
		t.Errorf("%d checks of another namespace came first", waited)
	}
}

// checkedDuring is how many passwords of other hosts were checked between the begin and the end of
// the one request of a host, by an access log of "$host $status $msec $request_time".
func checkedDuring(t *testing.T, file, host string) int {
	t.Helper()
	var lines []string
	headgatetest.Eventually(t, "the request is logged", func() bool {
		text, err := os.ReadFile(file)
		lines = strings.Split(string(text), "\n")
		return err == nil && slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, host+" ") })
	})
	var ends []float64 // of checks, in the order of the log
	for _, line := range lines {
		var of string
		var status int
		var end, took float64
		if _, err := fmt.Sscan(line, &of, &status, &end, &took); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if of == host {
			return len(slices.DeleteFunc(ends, func(other float64) bool { return other < end-took }))
		}
		if status == 401 {
			ends = append(ends, end)
		}
	}
	return 0
}

// try is the status of a request to web.test, -1 if there was none.
func try(g *headgatetest.Instance, credentials string) int {
	return tryHost(g, "web.test", credentials)
}

func tryHost(g *headgatetest.Instance, host, credentials string) int {
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	r, err := g.Try(client, headgatetest.Request{Host: host, Header: basicHeader(credentials)})
	if err != nil {
		return -1
	}
	return r.Status
}

// Clients that leave while their passwords are checked do not keep others waiting.
func TestClientsLeave(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: one(t) + secret("users", "user:"+quickHash) + guarded("web", "web.test", "users")})
	for _, http2 := range []bool{false, true} {
		scheme := map[bool]string{false: "http", true: "https"}[http2]
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				client := g.NewClient(http2)
				defer client.CloseIdleConnections()
				client.Timeout = time.Duration(5+i) * time.Millisecond
				// What comes of it does not matter.
				_, _ = g.Try(client, headgatetest.Request{Host: "web.test", Scheme: scheme, HTTP2: http2, Header: basicHeader(fmt.Sprintf("user:wrong %d", i))})
			})
		}
		group.Wait()
		headgatetest.Eventually(t, "a password can be checked", func() bool { return try(g, "user:wrong") == 401 })
	}
	// All places are free again, and so are those at the same checks.
	var group sync.WaitGroup
	for i := range 30 {
		group.Go(func() {
			if status := try(g, fmt.Sprintf("user:wrong %d", i)); status != 401 {
				t.Errorf("status %d", status)
			}
		})
	}
	group.Wait()
}

// Without libcrypt no client gets in by a hash that only libcrypt can check.
func TestWithoutLibrary(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: one(t) + guarded("web", "web.test", "users") +
		secret("users", "slow:"+mediumHash, "apr1:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/", "plain:{PLAIN}secret")})
	// Threads read it at their first check.
	file := filepath.Join(g.RunDir.Path(), "lua/headgate/feature/basic_auth/crypt.lua")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `{ "libcrypt.so.1", "libcrypt.so.2", "crypt" }`, `{ "libnone.so" }`, 1)
	if changed == string(text) {
		t.Fatal("crypt.lua has other libraries")
	}
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	for credentials, want := range map[string]int{
		"slow:secret": 503, "slow:wrong": 503, "apr1:secret": 200, "apr1:wrong": 401, "plain:secret": 200, "unknown:secret": 401,
	} {
		if status := try(g, credentials); status != want {
			t.Errorf("%s: status %d, want %d", credentials, status, want)
		}
	}
	headgatetest.Eventually(t, "it is logged", func() bool { return strings.Contains(g.Log.String(), "libcrypt.so.1 is not installed") })
}
