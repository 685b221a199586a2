package main

import "time"

// sizeInterval is how often the size is read: Windows does not report changes.
const sizeInterval = 500 * time.Millisecond

// followSize reports that the terminal's size may have changed until done is closed.
func followSize(resized chan<- struct{}, done <-chan struct{}) {
	ticker := time.NewTicker(sizeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			select {
			case resized <- struct{}{}:
			default: // One is reported already.
			}
		case <-done:
			return
		}
	}
}
