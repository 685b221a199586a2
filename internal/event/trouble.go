package event

import (
	"log/slog"
	"sync"
	"time"
)

// repeat is how often a trouble that lasts is told again.
const repeat = 5 * time.Minute

// A trouble is told when it begins and rarely while it lasts.
type trouble struct {
	log *slog.Logger

	mu   sync.Mutex
	told map[string]time.Time
}

func (t *trouble) tell(message string, attrs ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if last, ok := t.told[message]; ok && now.Sub(last) < repeat {
		return
	}
	if t.told == nil {
		t.told = map[string]time.Time{}
	}
	t.told[message] = now
	t.log.Warn("events: "+message, attrs...)
}
