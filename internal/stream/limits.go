package stream

import (
	"errors"
	"sync/atomic"
	"syscall"
)

// MaxConnections is how many connections or sessions a port may have. Further connections
// are closed; a further session of UDP ends the one of a few that was idle for longest.
const MaxConnections = 16384

// spareFiles is how many files of the process are left for all else.
const spareFiles = 1024

// filesEach is how many files a connection needs.
const filesEach = 2

// limits bound the connections of all ports by the files that the process may open.
type limits struct {
	most int64
	open atomic.Int64
}

func newLimits() *limits {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return &limits{most: MaxConnections}
	}
	return &limits{most: int64(max(files.Cur, 2*spareFiles)-spareFiles) / filesEach}
}

var errFull = errors.New("too many connections")

// take takes room for a connection of a port that has some, or fails.
func (l *limits) take(ofPort int) error {
	if ofPort >= MaxConnections {
		return errFull
	}
	if l.open.Add(1) > l.most {
		l.open.Add(-1)
		return errFull
	}
	return nil
}

func (l *limits) give() { l.open.Add(-1) }
