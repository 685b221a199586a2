package model

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// Statuses is a set of statuses that an answer may have. It holds only those
// that NGINX can catch, and compares with ==.
type Statuses [5]uint64

// The first and the last status that NGINX can catch. In between it can't catch
// 408, 444 and 499, which end the client's connection without an answer.
const (
	firstStatus = 300
	lastStatus  = 599
)

var errStatus = errors.New("must be statuses from 300 to 599 without 408, 444 and 499, separated by commas")

// ParseStatuses reads "404,503". An empty text is the empty set.
func ParseStatuses(text string) (Statuses, error) {
	var set Statuses
	if strings.TrimSpace(text) == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		status, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil || !set.Add(int(status)) {
			return Statuses{}, errStatus
		}
	}
	return set, nil
}

// Add puts a status into the set and tells whether it is one that can be there.
func (s *Statuses) Add(status int) bool {
	switch {
	case status < firstStatus || status > lastStatus, status == 408, status == 444, status == 499:
		return false
	}
	n := status - firstStatus
	s[n/64] |= 1 << (n % 64)
	return true
}

// Has tells whether a status is in the set.
func (s Statuses) Has(status int) bool {
	n := status - firstStatus
	return status >= firstStatus && status <= lastStatus && s[n/64]&(1<<(n%64)) != 0
}

// All are the statuses in the set, the least first.
func (s Statuses) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for status := firstStatus; status <= lastStatus; status++ {
			if s.Has(status) && !yield(status) {
				return
			}
		}
	}
}

// Empty tells whether nothing is in the set.
func (s Statuses) Empty() bool { return s == Statuses{} }

// within tells whether all that is in the set is in the other one too.
func (s Statuses) within(other Statuses) bool {
	for i := range s {
		if s[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

// unlike is how many statuses are in one of both sets only.
func (s Statuses) unlike(other Statuses) int {
	n := 0
	for i := range s {
		n += bits.OnesCount64(s[i] ^ other[i])
	}
	return n
}

// String are the statuses with commas between them, "none" for the empty set.
func (s Statuses) String() string {
	var b strings.Builder
	for status := range s.All() {
		fmt.Fprintf(&b, ",%d", status)
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()[1:]
}
