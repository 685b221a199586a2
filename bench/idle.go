package main

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"text/tabwriter"
)

// idleConnections is how many connections measureIdle opens, where the process may open as
// many files: both ends of each are in this process.
const idleConnections = 10000

// otherFiles is how many files are left for all else.
const otherFiles = 2000

// allowedIdle is how many of them the process may open. It allows itself, and those that it
// starts, to open more files where it can.
func allowedIdle() (int, error) {
	const wanted = 2*idleConnections + otherFiles
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0, err
	}
	if files.Max < wanted && syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: wanted, Max: wanted}) == nil {
		files.Max = wanted
	}
	return min(idleConnections, int(max(files.Max, 2*otherFiles)-otherFiles)/2), nil
}

// measureIdle prints the memory that idle connections take in both programs. A byte was
// passed over each of them before.
func measureIdle(ctx context.Context, n int, static, ours streamSide, to io.Writer) error {
	var each [2]float64
	for i, side := range []streamSide{static, ours} {
		before, err := status(side.pid, "RssAnon")
		if err != nil {
			return err
		}
		connections, err := side.open(ctx, streamLoad{network: "tcp"}, n)
		after, failed := status(side.pid, "RssAnon")
		closeAll(connections)
		if err != nil {
			return fmt.Errorf("%s: idle connection %d: %w", side.name, len(connections), err)
		}
		if failed != nil {
			return failed
		}
		each[i] = float64(after-before) / float64(n)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "memory\tNGINX bytes/connection\tHeadgate\tratio\n%d idle TCP connections\t%.0f\t%.0f\t%.2f\n", n, each[0], each[1], each[1]/each[0])
	return table.Flush()
}
