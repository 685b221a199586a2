package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/miekg/dns"
)

const (
	// maxAddresses bounds the addresses of one name.
	maxAddresses = 64
	// maxAliases bounds the CNAMEs of one answer.
	maxAliases = 16
	// The limits of the C library.
	maxServers, maxAttempts, maxTimeout = 3, 5, 30
)

// lookup finds the addresses of a name. Last is the full name that had addresses
// the last time: if the resolvers fail for that one, the answer of another search
// domain does not replace it.
func (s *Source) lookup(ctx context.Context, name, last string) answer {
	if list := hostsAddresses(read(s.settings.Hosts), name); len(list) > 0 {
		return answer{outcome: resolved, addresses: bound(list), ttl: hostsTTL, from: s.settings.Hosts}
	}
	config := s.config()
	result := answer{outcome: missing}
	for _, candidate := range config.NameList(name) {
		if _, ok := dns.IsDomainName(candidate); !ok {
			continue
		}
		// AAAA records count only if there are no A records.
		a := s.query(ctx, config, candidate, dns.TypeA)
		if a.outcome == empty {
			a = s.query(ctx, config, candidate, dns.TypeAAAA)
		}
		silent := errors.Is(a.err, errSilent)
		if a.outcome == resolved || silent || a.outcome == unknown && candidate == last {
			return a
		}
		if a.outcome > result.outcome {
			result = a
		}
	}
	return result
}

// errSilent is the error if no server answers.
var errSilent = errors.New("no name server answers")

// query asks the servers in turn until one of them gives a definite answer.
func (s *Source) query(ctx context.Context, config *dns.ClientConfig, name string, kind uint16) answer {
	err := errSilent
	for range config.Attempts {
		for _, server := range config.Servers {
			if ctx.Err() != nil {
				return answer{outcome: unknown, err: ctx.Err()}
			}
			reply, exchangeErr := s.exchange(ctx, config, server, name, kind)
			if exchangeErr != nil {
				continue
			}
			switch reply.Rcode {
			case dns.RcodeNameError:
				return answer{outcome: missing}
			case dns.RcodeSuccess:
				return readReply(reply, name, kind)
			}
			err = fmt.Errorf("a name server answers %s", dns.RcodeToString[reply.Rcode])
		}
	}
	return answer{outcome: unknown, err: err}
}

func (s *Source) exchange(ctx context.Context, config *dns.ClientConfig, server, name string, kind uint16) (*dns.Msg, error) {
	question := new(dns.Msg).SetQuestion(name, kind)
	at := net.JoinHostPort(server, strconv.Itoa(int(cmp.Or(s.settings.Port, 53))))
	timeout := time.Duration(config.Timeout) * time.Second
	reply, err := ask(ctx, &dns.Client{Net: "udp", Timeout: timeout}, at, question)
	if err == nil && reply.Truncated {
		reply, err = ask(ctx, &dns.Client{Net: "tcp", Timeout: timeout}, at, question)
	}
	if err != nil {
		return nil, err
	}
	if !reply.Response || len(reply.Question) != 1 || dns.CanonicalName(reply.Question[0].Name) != dns.CanonicalName(name) ||
		reply.Question[0].Qtype != kind {
		return nil, errors.New("a reply to another query")
	}
	return reply, nil
}

// ask sends a question and waits for its reply, until ctx ends.
func ask(ctx context.Context, client *dns.Client, at string, question *dns.Msg) (*dns.Msg, error) {
	conn, err := client.DialContext(ctx, at)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// The client itself observes only the deadline of a context.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	reply, _, err := client.ExchangeWithConnContext(ctx, question, conn)
	return reply, err
}

// readReply reads the addresses of a name, through the aliases that the
// resolver followed.
func readReply(reply *dns.Msg, name string, kind uint16) answer {
	aliases := map[string]*dns.CNAME{}
	for _, record := range reply.Answer {
		if alias, ok := record.(*dns.CNAME); ok {
			aliases[dns.CanonicalName(alias.Hdr.Name)] = alias
		}
	}
	owner, ttl := dns.CanonicalName(name), uint32(maxTTL/time.Second)
	for range maxAliases {
		alias, ok := aliases[owner]
		if !ok {
			break
		}
		owner, ttl = dns.CanonicalName(alias.Target), min(ttl, alias.Hdr.Ttl)
	}
	a := answer{outcome: empty, from: name}
	for _, record := range reply.Answer {
		if header := record.Header(); dns.CanonicalName(header.Name) != owner || header.Rrtype != kind {
			continue
		}
		if address, ok := addressOf(record); ok {
			a.outcome, a.addresses = resolved, append(a.addresses, address)
			ttl = min(ttl, record.Header().Ttl)
		}
	}
	a.addresses, a.ttl = bound(a.addresses), time.Duration(ttl)*time.Second
	return a
}

func addressOf(record dns.RR) (netip.Addr, bool) {
	var ip net.IP
	switch r := record.(type) {
	case *dns.A:
		ip = r.A
	case *dns.AAAA:
		ip = r.AAAA
	}
	address, ok := netip.AddrFromSlice(ip)
	return address.Unmap(), ok
}

// bound sorts addresses, and drops duplicates and those beyond the limit.
func bound(list []netip.Addr) []netip.Addr {
	slices.SortFunc(list, netip.Addr.Compare)
	list = slices.Compact(list)
	return list[:min(len(list), maxAddresses)]
}
