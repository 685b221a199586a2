package limitstore

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password := file("password", "secret\n")
	for _, c := range []struct {
		address Address
		err     string
	}{
		{Address{URL: "redis://store:6379"}, ""},
		{Address{URL: "redis://store"}, ""},
		{Address{URL: "redis://user@store:6379/3", PasswordFile: password}, ""},
		{Address{URL: "rediss://[2001:db8::1]:6379"}, ""},
		{Address{URL: "redis://:secret@store:6379"}, "must have no password"},
		{Address{URL: "redis://user:secret@store:6379"}, "must have no password"},
		{Address{URL: "redis://store:6379?skip_verify=true"}, form},
		{Address{URL: "redis://store:6379/first"}, form},
		{Address{URL: "store:6379"}, form},
		{Address{URL: "memcached://store:11211"}, form},
		{Address{URL: "redis://"}, form},
		{Address{URL: "redis://a b"}, form},
		{Address{URL: "redis://store", PasswordFile: filepath.Join(dir, "none")}, "read the password: "},
		{Address{URL: "rediss://store", AuthorityFile: filepath.Join(dir, "none")}, "read the certificate authorities: "},
		{Address{URL: "rediss://store", AuthorityFile: password}, "no certificate in PEM"},
	} {
		switch err := c.address.Check(); {
		case c.err == "" && err != nil:
			t.Errorf("%v: %v", c.address, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%v: error %v, want %q", c.address, err, c.err)
		}
	}
	o, err := Address{URL: "redis://user@store/3", PasswordFile: password}.options()
	if err != nil {
		t.Fatal(err)
	}
	if o.address != "store:6379" || o.user != "user" || o.database != 3 || o.tls != nil {
		t.Errorf("options %+v", o)
	}
	if o, err = (Address{URL: "rediss://store:1"}).options(); err != nil || o.address != "store:1" || o.tls == nil || o.tls.ServerName != "store" || o.tls.InsecureSkipVerify || o.tls.MinVersion < tls.VersionTLS12 {
		t.Errorf("TLS is %+v, %v", o.tls, err)
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields map[string]string
		want   int64
	}{
		{nil, 0},
		{map[string]string{"me": "7"}, 0},
		{map[string]string{"me": "7", "you": "3", "they": "4"}, 7},
		{map[string]string{"you": "-3", "they": "many", "we": "99999999999999999999", "one": "1.5", "two": "2"}, 2},
	} {
		if got := sum(c.fields, "me"); got != c.want {
			t.Errorf("%v: %d, want %d", c.fields, got, c.want)
		}
	}
}

// A fakeStore is a store in memory, which fails with err.
type fakeStore struct {
	mu    sync.Mutex
	err   error
	wrote map[string]int64
	calls int
}

func (f *fakeStore) exchange(_ context.Context, _ string, counters []counter) (map[string]int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	others := map[string]int64{}
	for _, c := range counters {
		if f.err == nil {
			f.wrote[c.Key] = c.Own
			others[c.Key], others[c.Before] = 5, 6
		}
	}
	return others, f.err
}

func (f *fakeStore) ping(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fakeStore) close() {}

func (f *fakeStore) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// A fakeNGINX answers with what is in changed, and remembers what it learns.
type fakeNGINX struct {
	mu      sync.Mutex
	replica string
	changed []counter
	others  map[string]int64
}

func (f *fakeNGINX) ask(_ context.Context, q, into any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, n := range q.(question).Others {
		f.others[key] = n
	}
	n := min(batch, len(f.changed))
	text, err := json.Marshal(answer{f.replica, f.changed[:n]})
	if err != nil {
		return err
	}
	f.changed = f.changed[n:]
	return json.Unmarshal(text, into)
}

func (f *fakeNGINX) change(replica string, counters ...counter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replica = replica
	f.changed = append(f.changed, counters...)
}

// What has changed reaches the store, also after it was away, and NGINX learns of the others; what is
// over by then does not, nor what an earlier NGINX has counted.
func TestExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote, nginx := &fakeStore{wrote: map[string]int64{}}, &fakeNGINX{replica: "r", others: map[string]int64{}}
		var log strings.Builder
		s := newStore(Settings{Ask: nginx.ask, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&log, nil))}, remote)
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		wait(Interval / 2)
		if testutil.ToFloat64(s.up) != 1 {
			t.Error("the store is not up")
		}
		const many = 3*batch + 1
		for i := range many {
			nginx.change("r", counter{Key: fmt.Sprint("k", i), Before: fmt.Sprint("b", i), Seconds: 60, Own: int64(i)})
		}
		wait(Interval)
		if len(remote.wrote) != many || remote.wrote["k7"] != 7 || len(nginx.others) != 2*many || nginx.others["k7"] != 5 || nginx.others["b7"] != 6 {
			t.Errorf("%d counters in the store, %d known to NGINX", len(remote.wrote), len(nginx.others))
		}
		calls := remote.calls
		if wait(10 * Interval); remote.calls != calls {
			t.Error("the store is asked though nothing has changed")
		}

		remote.fail(errors.New("gone"))
		nginx.change("r", counter{Key: "short", Seconds: 1, Own: 1}, counter{Key: "long", Seconds: 60, Own: 1})
		wait(2 * RetryInterval)
		nginx.change("r", counter{Key: "long", Seconds: 60, Own: 2})
		wait(2 * RetryInterval)
		if testutil.ToFloat64(s.up) != 0 || testutil.ToFloat64(s.failures) < 3 {
			t.Error("the metrics don't say that the store is away")
		}
		remote.fail(nil)
		wait(2 * RetryInterval)
		if _, late := remote.wrote["short"]; late || remote.wrote["long"] != 2 || testutil.ToFloat64(s.up) != 1 {
			t.Errorf("after the store came back it has %v", remote.wrote)
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d lines in the log, want 2:\n%s", n, log.String())
		}

		remote.fail(errors.New("gone"))
		nginx.change("r", counter{Key: "former", Seconds: 60, Own: 1})
		wait(2 * RetryInterval)
		nginx.change("s", counter{Key: "new", Seconds: 60, Own: 1})
		remote.fail(nil)
		wait(2 * RetryInterval)
		if _, late := remote.wrote["former"]; late || remote.wrote["new"] != 1 {
			t.Errorf("after NGINX was started again the store has %v", remote.wrote)
		}
		cancel()
		synctest.Wait()
	})
}

// A store that takes connections and says nothing is away.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	nginx := &fakeNGINX{replica: "r", others: map[string]int64{}}
	nginx.change("r", counter{Key: "k", Before: "b", Seconds: 60, Own: 1})
	s, err := New(Settings{Address: Address{URL: "redis://" + listener.Addr().String()}, Ask: nginx.ask, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.remote.close()
	if err := s.exchange(t.Context()); err == nil || len(s.pending) != 1 {
		t.Errorf("error %v, %d counters wait", err, len(s.pending))
	}
}
