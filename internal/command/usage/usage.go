// Package usage says what is wrong with the arguments and flags of a command, and which
// exit status follows.
//
// It knows cobra and the flags that ingress-nginx once had. What a command does, and which
// flags it has, is for the command.
package usage

import (
	"errors"
	"fmt"
	"io"
)

// An ExitStatus is the exit status of a command other than 0, or 1 with an error.
// Without an error, nothing is printed.
type ExitStatus struct {
	Status int
	Err    error
}

func (e ExitStatus) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e ExitStatus) Unwrap() error { return e.Err }

// wrongUse is the exit status of commands with invalid arguments.
const wrongUse = 2

// Wrong is an error in the arguments of a command, or in what it reads because of them.
func Wrong(err error) error {
	if err == nil {
		return nil
	}
	return ExitStatus{wrongUse, err}
}

// Report prints an error of a program and returns the exit status.
func Report(out io.Writer, program string, err error) int {
	if err == nil {
		return 0
	}
	if err.Error() != "" {
		fmt.Fprintln(out, program+":", err)
	}
	if e, ok := errors.AsType[ExitStatus](err); ok {
		return e.Status
	}
	return 1
}
