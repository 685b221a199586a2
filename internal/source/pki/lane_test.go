package pki

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// TestLane: an owner has a quarter of it, and leaves nothing behind.
func TestLane(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := newLane(8)
	enter := func(owner string) {
		t.Helper()
		if !l.enter(t.Context(), owner) {
			t.Fatal("did not enter")
		}
	}
	for _, owner := range []string{"a", "b", "c", "d"} {
		enter(owner)
		enter(owner)
		if l.enter(ended, owner) {
			t.Errorf("%s has more than its share", owner)
		}
	}
	if l.enter(ended, "e") {
		t.Error("more in the lane than it holds")
	}
	l.leave("a")
	enter("e")
	for _, owner := range []string{"a", "b", "b", "c", "c", "d", "d", "e"} {
		l.leave(owner)
	}
	if len(l.owners) != 0 || len(l.slots) != 0 {
		t.Errorf("left: %d owners, %d slots", len(l.owners), len(l.slots))
	}
}

// A silentQuest gets no answer.
type silentQuest struct {
	of    string
	asked chan string
}

func (q silentQuest) owner() string { return q.of }

func (q silentQuest) ask(ctx context.Context) (metav1.Object, time.Duration, error) {
	q.asked <- q.of
	<-ctx.Done()
	return nil, 0, ctx.Err()
}

// TestSilentOwner: however much of one owner's is silent, others are asked.
func TestSilentOwner(t *testing.T) {
	f := newFollower(slog.New(slog.DiscardHandler))
	asked := make(chan string, 1000)
	silent := map[string]quest{}
	for i := range 500 {
		silent[strconv.Itoa(i)] = silentQuest{"a", asked}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.Run(ctx, func(context.Context, []source.Change) {})
	}()
	f.want(silent, nil)
	for range newAtOnce / shares {
		<-asked
	}
	f.want(map[string]quest{"other": silentQuest{"b", asked}}, nil)
	select {
	case owner := <-asked:
		if owner != "b" {
			t.Error("more of one owner's than its share")
		}
	case <-time.After(10 * time.Second):
		t.Error("the other owner waits")
	}
	cancel()
	<-ended
}

// TestOwners: who waits for whom.
func TestOwners(t *testing.T) {
	for _, c := range []struct {
		quest quest
		want  string
	}{
		{&stapleQuest{subject: source.Subject{Secret: "shop/tls"}}, "shop"},
		{&stapleQuest{}, ""},
		{&issuersQuest{url: "http://CA.test:8080/x?y"}, "ca.test"},
		{&issuersQuest{url: "http://%"}, ""},
	} {
		if got := c.quest.owner(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.quest, got, c.want)
		}
	}
}
