package publisher_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/controller/publisher"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
)

func start(t *testing.T) (*publisher.Publisher, func() []string) {
	t.Helper()
	store := publish.New()
	p := publisher.New(store, slog.New(slog.NewTextHandler(t.Output(), nil)))
	reader := store.Reader(nil)
	if _, err := reader.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What goes out with an Apply.
	next := func() []string {
		t.Helper()
		p.Apply(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		cut, err := reader.Next(ctx)
		if err != nil {
			return nil
		}
		var list []string
		for _, r := range cut.Resources {
			list = append(list, r.Key.String())
		}
		for _, key := range cut.Gone {
			list = append(list, "no "+key.String())
		}
		return list
	}
	return p, next
}

func wants(t *testing.T, about string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q go out, want %q", about, got, want)
	}
}

// Neither a name goes out before its new host, nor the end of a backend before hosts that may name it.
func TestWaits(t *testing.T) {
	p, next := start(t)
	p.Set(unit.Of(model.Backend{Key: "shop/old/80"}))
	p.Set(unit.Of(model.Host{Name: "b.test"}))
	wants(t, "a backend and a host", next(), "backend shop/old/80", "host b.test")
	p.Expect("a.test")
	p.Expect("b.test")
	p.Set(unit.Of(model.Name{Name: "a.test", Host: "a.test"}))
	p.Set(unit.Of(model.Name{Name: "www.a.test", Host: "a.test"}))
	p.Set(unit.Of(model.Name{Name: "b.test", Host: "b.test"}))
	p.Set(unit.Built{Key: unit.Backend.Key("shop/old/80")})
	p.Set(unit.Of(model.Backend{Key: "shop/new/80"}))
	wants(t, "what need not wait", next(), "backend shop/new/80", "name b.test")
	p.Set(unit.Of(model.Host{Name: "a.test", Namespace: "shop"}))
	wants(t, "the host", next(), "host a.test", "name a.test", "name www.a.test")
	p.Set(unit.Of(model.Host{Name: "b.test", Namespace: "shop"}))
	wants(t, "all hosts", next(), "host b.test", "no backend shop/old/80")
	p.Expect("a.test")
	p.Set(unit.Built{Key: unit.Backend.Key("shop/new/80")})
	p.Set(unit.Of(model.Backend{Key: "shop/new/80"}))
	p.Set(unit.Built{Key: unit.Host.Key("a.test")})
	wants(t, "a backend that came back", next(), "no host a.test")
}

// What is pushed is reported once all edges that are there have it.
func TestPushed(t *testing.T) {
	p, _ := start(t)
	pushed := 0
	p.Notify(func(all, _ bool) {
		if all {
			pushed++
		}
	})
	run := func(acknowledge func()) {
		go acknowledge()
		(<-p.Events())(t.Context())
	}
	apply := func(version string) {
		p.Set(unit.Of(model.Host{Name: "a.test", Namespace: version}))
		p.Apply(t.Context())
	}
	apply("one")
	if pushed != 1 {
		t.Errorf("without an edge it was reported %d times", pushed)
	}
	p.Connected(1, "a")
	p.Connected(2, "b")
	p.Acknowledged(1, 1, nil)
	run(func() { p.Acknowledged(2, 1, nil) })
	pushed = 0
	apply("two")
	p.Acknowledged(1, 2, nil)
	if current, behind := p.Edges(); current != 1 || behind != 1 {
		t.Errorf("%d edges have all changes and %d lack some: want one each", current, behind)
	}
	if pushed != 0 {
		t.Error("it was reported before an edge had it")
	}
	run(func() { p.Acknowledged(2, 2, nil) })
	if pushed != 1 {
		t.Errorf("when both edges had it, it was reported %d times", pushed)
	}
	apply("three")
	p.Acknowledged(1, 3, nil)
	pushed = 0
	run(func() { p.Gone(2) })
	if pushed != 1 {
		t.Error("an edge that is gone is waited for")
	}
	pushed = 0
	// An edge may have what is published before that is noted here.
	p.Set(unit.Of(model.Host{Name: "a.test", Namespace: "four"}))
	p.Acknowledged(1, 4, nil)
	p.Apply(t.Context())
	if pushed != 1 {
		t.Errorf("an edge had it at once, and it was reported %d times", pushed)
	}
}

// An edge that takes nothing is not waited for any longer than a while.
func TestSlowEdgeIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer p.Run(ctx)()
		defer cancel()
		pushed := 0
		p.Notify(func(bool, bool) { pushed++ })
		p.Set(unit.Of(model.Host{Name: "a.test"}))
		p.Apply(t.Context())
		p.Connected(1, "slow")
		go p.Acknowledged(1, 1, nil)
		(<-p.Events())(t.Context())
		pushed = 0
		began := time.Now()
		p.Set(unit.Of(model.Host{Name: "a.test", Namespace: "shop"}))
		p.Apply(t.Context())
		if pushed != 0 {
			t.Error("the edge is not waited for")
		}
		(<-p.Events())(t.Context())
		if took := time.Since(began); pushed != 1 || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("reported %d times, after %v: want once, after 10 s", pushed, took)
		}
		if current, behind := p.Edges(); current != 0 || behind != 1 {
			t.Errorf("%d edges have everything, and %d do not", current, behind)
		}
		p.Set(unit.Of(model.Host{Name: "a.test", Namespace: "shops"}))
		if p.Apply(t.Context()); pushed != 2 {
			t.Error("the slow edge is waited for again")
		}
	})
}

// An edge that never has everything is not waited for any longer because it takes some changes, or connects again.
func TestLaggingEdgeIsNotWaitedFor(t *testing.T) {
	for name, lag := range map[string]func(p *publisher.Publisher, i int){
		"it takes old changes": func(p *publisher.Publisher, i int) {
			if i == 0 {
				p.Connected(1, "lagging")
			}
			p.Acknowledged(1, uint64(i), nil)
		},
		"it connects again": func(p *publisher.Publisher, i int) {
			p.Gone(int64(i))
			p.Connected(int64(i+1), "lagging")
		},
		"it connects again before it goes": func(p *publisher.Publisher, i int) {
			p.Connected(int64(i+1), "lagging")
			p.Gone(int64(i))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := start(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer p.Run(ctx)()
				defer cancel()
				// What is reported other than by an Apply is of no interest.
				go func() {
					for {
						select {
						case <-p.Events():
						case <-ctx.Done():
							return
						}
					}
				}()
				pushed := false
				p.Notify(func(bool, bool) { pushed = true })
				p.Set(unit.Of(model.Host{Name: "a.test", Namespace: "first"}))
				p.Apply(ctx)
				for i := range 5 {
					pushed = false
					lag(p, i)
					p.Set(unit.Of(model.Host{Name: "a.test", Namespace: fmt.Sprint(i)}))
					p.Apply(ctx)
					if waits := i < 4; pushed == waits {
						t.Errorf("after %d s: reported is %t", 3*i, pushed)
					}
					time.Sleep(3 * time.Second)
				}
			})
		})
	}
}

// A generated certificate stays here: each edge has its own.
func TestGeneratedCertificate(t *testing.T) {
	p, next := start(t)
	p.Set(unit.Built{Key: unit.DefaultCertificateKey, Model: model.Certificate{Hash: "x"}})
	wants(t, "a generated one", next())
	p.Set(unit.Built{Key: unit.DefaultCertificateKey, Model: model.Certificate{Hash: "y", Secret: "shop/tls"}})
	wants(t, "that of a Secret", next(), "default-certificate")
	p.Set(unit.Built{Key: unit.DefaultCertificateKey, Model: model.Certificate{Hash: "x"}})
	wants(t, "a generated one instead", next(), "no default-certificate")
}
