package limitstore_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/cluster/limitstore"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A replica counts one client, in one window, whose keys are K and B.
type replica struct {
	mu     sync.Mutex
	name   string
	own    int
	others map[string]int
	log    headgatetest.Log
}

func (r *replica) ask(_ context.Context, question, answer any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	learns := struct{ Others map[string]int }{}
	if err := json.Unmarshal(text, &learns); err != nil {
		return err
	}
	for key, n := range learns.Others {
		r.others[key] = n
	}
	text, err = json.Marshal(map[string]any{"replica": r.name, "changed": []map[string]any{{"key": "K", "before": "B", "seconds": 60, "own": r.own}}})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (r *replica) knows() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.others["K"]
}

func start(t *testing.T, name string, own int, address limitstore.Address) *replica {
	t.Helper()
	r := &replica{name: name, own: own, others: map[string]int{}}
	s, err := limitstore.New(limitstore.Settings{Address: address, Ask: r.ask, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&r.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// Replicas learn of each other in a real store, with a user and a password, which may change.
func TestRedis(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong")
	// All that Headgate needs, as docs/limits-over-replicas.md says.
	store := headgatetest.StartRedis(t, strings.Fields("--user headgate on >secret ~headgate:* +hset +expire +hgetall +ping +select --user default off")...)
	address := limitstore.Address{URL: strings.Replace(store.URL(), "redis://", "redis://headgate@", 1) + "/1", PasswordFile: file}
	one, two := start(t, "one", 3, address), start(t, "two", 4, address)
	headgatetest.Eventually(t, "the log says that the password is wrong", func() bool { return strings.Contains(one.log.String(), "WRONGPASS") })
	if text := one.log.String(); strings.Contains(text, "wrong\n") || strings.Contains(text, "secret") {
		t.Errorf("the log has a password: %s", text)
	}
	write("secret")
	headgatetest.Eventually(t, "replicas know of each other", func() bool { return one.knows() == 4 && two.knows() == 3 })
	three := start(t, "three", 5, address)
	headgatetest.Eventually(t, "a third one knows of both", func() bool { return three.knows() == 7 && one.knows() == 9 })
}
