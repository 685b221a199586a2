package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// toolLog is the environment variable with the file in which [runTool] notes tools.
const toolLog = "TESTSUMMARY_TOOLS"

// tools are the processor's time that tools of Go took.
type tools struct{ compile, link, vet time.Duration }

func (t tools) plus(other tools) tools {
	return tools{t.compile + other.compile, t.link + other.link, t.vet + other.vet}
}

// runTool runs a tool for the go command, with its input and output, and adds a line with its
// name and the processor's time that it used to the file log. It returns the tool's exit code.
// What the go command builds with it is the same as without it, and in the same cache.
func runTool(command []string, log string) int {
	tool := exec.Command(command[0], command[1:]...)
	tool.Stdin, tool.Stdout, tool.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := tool.Run()
	if tool.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		return 2
	}
	if log != "" {
		used := tool.ProcessState.UserTime() + tool.ProcessState.SystemTime()
		line := fmt.Sprintf("%s %d\n", strings.TrimSuffix(filepath.Base(command[0]), ".exe"), used.Nanoseconds())
		// What can't be noted is missing in a table, and no reason to fail a build.
		if file, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644); err == nil {
			io.WriteString(file, line)
			file.Close()
		}
	}
	return tool.ProcessState.ExitCode()
}

// readTools adds up what runTool noted. There is no file if no tool ran.
func readTools(file string) (tools, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || file == "" {
		return tools{}, nil
	}
	if err != nil {
		return tools{}, err
	}
	var sum tools
	for line := range strings.Lines(string(text)) {
		var name string
		var used time.Duration
		if _, err := fmt.Sscan(line, &name, &used); err != nil {
			return tools{}, fmt.Errorf("%s: %q is not a tool: %w", file, line, err)
		}
		switch name {
		case "link":
			sum.link += used
		case "vet":
			sum.vet += used
		default: // asm, cgo and pack belong to compiling
			sum.compile += used
		}
	}
	return sum, nil
}
