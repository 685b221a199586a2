package follow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// A job answers what is said, and keeps the last answer.
type job struct {
	owner   string
	known   func() (Answer, bool)
	answers []Answer
	asked   chan string
}

func (j *job) Owner() string { return j.owner }

func (j *job) Known() (Answer, bool) {
	if j.known == nil {
		return Answer{}, false
	}
	return j.known()
}

func (j *job) Fetch(ctx context.Context) Answer {
	j.asked <- j.owner
	if len(j.answers) == 0 {
		<-ctx.Done()
		return Answer{Err: ctx.Err()}
	}
	answer := j.answers[0]
	if len(j.answers) > 1 {
		j.answers = j.answers[1:]
	}
	return answer
}

// following runs a Follower whose changes are written down.
func following(t *testing.T, slots Slots) (f *Follower[string], changes func() string) {
	t.Helper()
	var log []string
	queue := source.NewQueue()
	f = New[string](Settings{Name: "test", Slots: slots, Queue: queue, Log: slog.New(slog.DiscardHandler), Changed: func(object metav1.Object, deleted bool) {
		sign := "+"
		if deleted {
			sign = "-"
		}
		log = append(log, sign+object.GetName()+object.GetResourceVersion())
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx)
	}()
	go queue.Run(ctx, func(context.Context, []source.Change) {}, false)
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f, func() string {
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		text := strings.Join(log, " ")
		log = nil
		return text
	}
}

func object(name, version string) metav1.Object {
	return &source.OCSPResponse{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func isClosed(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestFollow: a new result is delivered once, while the subscription lasts.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, changes := following(t, Slots{1, 1, 1})
		j := &job{asked: make(chan string, 1000), answers: []Answer{
			{Object: object("a", "1"), Pause: time.Second}, {Object: object("a", "1"), Pause: time.Second},
			{Err: errors.New("silent"), Pause: time.Second}, {Object: object("a", "2"), Pause: time.Second},
			{Gone: true, Pause: time.Second}, {Object: object("a", "3"), Pause: time.Hour},
		}}
		of := func(string) Job { return j }
		if !isClosed(f.Subscribe([]string{"a"}, []string{"b"}, of)) {
			t.Error("what was answered is waited for")
		}
		for i, want := range []string{"+a1", "", "", "+a2", "-a2", "+a3", "", ""} {
			if got := changes(); got != want || len(j.asked) != min(i+1, 6) {
				t.Errorf("after %d s: %q, want %q; asked %d times", i, got, want, len(j.asked))
			}
			time.Sleep(time.Second)
		}
		f.Again("a")
		if changes(); len(j.asked) != 7 {
			t.Errorf("asked %d times", len(j.asked))
		}
		f.Subscribe(nil, []string{"a"}, of)
		f.Again("a")
		if got := changes(); got != "-a3" || len(j.asked) != 7 {
			t.Errorf("wanted no longer: %q, asked %d times", got, len(j.asked))
		}
	})
}

// TestOpen: a job without an answer is idle and keeps callers waiting until it
// has one, or is wanted no longer.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, changes := following(t, Slots{1, 1, 1})
		now := Answer{Open: true}
		j := &job{known: func() (Answer, bool) { return now, true }}
		of := func(string) Job { return j }
		first, other := f.Subscribe([]string{"a"}, nil, of), f.Subscribe([]string{"b", "a"}, nil, of)
		if isClosed(first) || isClosed(other) {
			t.Error("what is open is not waited for")
		}
		now = Answer{Object: object("a", "1")}
		if f.Again("a"); !isClosed(first) || isClosed(other) || changes() != "+a1" {
			t.Error("the answer to one does not end the wait for it alone")
		}
		if f.Subscribe(nil, []string{"b"}, of); !isClosed(other) {
			t.Error("what is wanted no longer is waited for")
		}
		now = Answer{Gone: true}
		if f.AllAgain(); changes() != "-a1" {
			t.Error("what is gone stays")
		}
	})
}

// TestSilentOwner: however much of one owner's is silent, others are asked, and
// so are those that answered.
func TestSilentOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := following(t, Slots{1, 8, 1})
		asked := make(chan string, 1000)
		want := func(name, owner string) {
			f.Subscribe([]string{name}, nil, func(string) Job { return &job{owner: owner, asked: asked} })
		}
		for i := range 500 {
			want(strconv.Itoa(i), "a")
		}
		want("other", "b")
		synctest.Wait()
		var owners []string
		for range len(asked) {
			owners = append(owners, <-asked)
		}
		slices.Sort(owners)
		if got := strings.Join(owners, ""); got != "aab" {
			t.Errorf("asked %q, want two of a and the one of b", got)
		}
	})
}
