package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// A terminal passes on what is typed as it is, until it is closed. It is the
// TerminalSizeQueue of the command that gets it.
type terminal struct {
	file    *os.File
	before  *term.State
	resized chan struct{}
	closed  chan struct{}
}

// openTerminal takes the terminal of the standard input.
func openTerminal(in io.Reader) (*terminal, error) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, errors.New("the standard input is not one")
	}
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, fmt.Errorf("setting the terminal: %w", err)
	}
	t := &terminal{file: file, before: before, resized: make(chan struct{}, 1), closed: make(chan struct{})}
	t.resized <- struct{}{}
	go followSize(t.resized, t.closed)
	return t, nil
}

// Next waits for a size. The first one is there at once.
func (t *terminal) Next() *remotecommand.TerminalSize {
	select {
	case <-t.resized:
	case <-t.closed:
		return nil
	}
	// The size is that of the window, which is the same for the input and the output
	// but on Windows, where only the output has one.
	for _, file := range []*os.File{t.file, os.Stdout} {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil {
			return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
		}
	}
	return nil
}

func (t *terminal) close() {
	close(t.closed)
	// There is no other way to get the terminal back.
	_ = term.Restore(int(t.file.Fd()), t.before)
}
