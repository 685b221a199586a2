package tracing

import "time"

// SetLinger sets how long reports are fetched after tracing was switched off.
func (e *Exporter) SetLinger(d time.Duration) { e.linger = d }
