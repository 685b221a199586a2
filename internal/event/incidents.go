package event

import (
	"log/slog"
	"sync"
	"time"
)

// repeat is how often an incident that lasts is logged again.
const repeat = 5 * time.Minute

// incidents logs each incident when it begins, and rarely while it lasts.
type incidents struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[string]time.Time
}

func (t *incidents) warn(message string, attrs ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if last, ok := t.logged[message]; ok && now.Sub(last) < repeat {
		return
	}
	if t.logged == nil {
		t.logged = map[string]time.Time{}
	}
	t.logged[message] = now
	t.log.Warn("events: "+message, attrs...)
}
