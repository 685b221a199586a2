package link

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Shares give each of many the same part of something, so that one can't take all of it. They know those
// who have, or wait for, a part.
type shares[K comparable] struct {
	mu sync.Mutex
	of map[K]*share
}

type share struct {
	*semaphore.Weighted
	users int
}

// enter returns the share of one, which is known until leave.
func (s *shares[K]) enter(of K, most int64) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[K]*share{}
	}
	own := s.of[of]
	if own == nil {
		own = &share{Weighted: semaphore.NewWeighted(most)}
		s.of[of] = own
	}
	own.users++
	return own
}

func (s *shares[K]) leave(of K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of[of]; own.users > 1 {
		own.users--
		return
	}
	delete(s.of, of)
}

// try takes a part, if there is one of most for it.
func (s *shares[K]) try(of K, most int64) bool {
	if s.enter(of, most).TryAcquire(1) {
		return true
	}
	s.leave(of)
	return false
}

// take waits for a part.
func (s *shares[K]) take(ctx context.Context, of K, most int64) error {
	if err := s.enter(of, most).Acquire(ctx, 1); err != nil {
		s.leave(of)
		return err
	}
	return nil
}

// release gives a part back that was taken.
func (s *shares[K]) release(of K) {
	s.mu.Lock()
	own := s.of[of]
	s.mu.Unlock()
	own.Release(1)
	s.leave(of)
}

// A place is where connections come from: an address of IPv4, or a network of IPv6, since who has one
// address there often has all of a network.
type place = netip.Prefix

// placeBits are the bits of a network of IPv6 that count.
const placeBits = 64

// placeOf is the place of an address; of what is none, it is the zero one.
func placeOf(address net.Addr) place {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return place{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		// It fails for bits that there are not.
		network, _ := ip.Prefix(placeBits)
		return network
	}
	return netip.PrefixFrom(ip, ip.BitLen())
}
