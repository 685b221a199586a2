package tracing

import "time"

// SetInterval sets how often reports are fetched, before Run.
func (e *Exporter) SetInterval(d time.Duration) { e.interval = d }

// SetLinger sets how long reports are fetched after tracing was switched off.
func (e *Exporter) SetLinger(d time.Duration) { e.linger = d }
