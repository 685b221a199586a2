//go:build !windows

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// followSize reports changes of the terminal's size until done is closed.
func followSize(resized chan<- struct{}, done <-chan struct{}) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	defer signal.Stop(changes)
	for {
		select {
		case <-changes:
			select {
			case resized <- struct{}{}:
			default: // One is reported already.
			}
		case <-done:
			return
		}
	}
}
