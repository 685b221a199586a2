package tracing

import "time"

// SetInterval sets how often reports are fetched, before Run.
func (e *Exporter) SetInterval(d time.Duration) { e.interval = d }

// SetLinger has reports fetched until over, after tracing was switched off.
func (e *Exporter) SetLinger(over <-chan time.Time) {
	e.linger = func() <-chan time.Time { return over }
}
