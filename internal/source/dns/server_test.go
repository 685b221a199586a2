package dns_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	wire "github.com/miekg/dns"
)

// A server answers for a zone on the loopback address, over UDP and TCP.
type server struct {
	t    *testing.T
	port uint16

	mu sync.Mutex
	// records has lines of a zone file by owner.
	records map[string][]string
	// fails has the names that get this answer's code.
	fails map[string]int
	// mute is how the names begin that are not answered.
	mute []string
	// silent: no question is answered.
	silent bool
	// foreign: answers repeat another question.
	foreign bool
	asked   []string // "name type network "
}

// startServer starts a server. Addresses are such as 127.0.0.2; all servers of
// a test have one port.
func startServer(t *testing.T, address string, port uint16) *server {
	t.Helper()
	s := &server{t: t, records: map[string][]string{}, fails: map[string]int{}}
	packets, listener, err := listen(address, port)
	// A port that is free for UDP may be some connection's for TCP.
	for tries := 0; err != nil && port == 0 && tries < 50; tries++ {
		packets, listener, err = listen(address, port)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.port = uint16(packets.LocalAddr().(*net.UDPAddr).Port)
	for _, of := range []*wire.Server{{PacketConn: packets, Handler: s.handler("udp")}, {Listener: listener, Handler: s.handler("tcp")}} {
		started := make(chan struct{})
		of.NotifyStartedFunc = func() { close(started) }
		ended := make(chan error, 1)
		go func() { ended <- of.ActivateAndServe() }()
		<-started
		t.Cleanup(func() {
			of.Shutdown()
			if err := <-ended; err != nil {
				t.Errorf("the DNS server ended: %v", err)
			}
		})
	}
	return s
}

// listen takes a port for UDP and TCP, any if it is 0.
func listen(address string, port uint16) (net.PacketConn, net.Listener, error) {
	packets, err := net.ListenPacket("udp", fmt.Sprintf("%s:%d", address, port))
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		return nil, nil, errors.Join(err, packets.Close())
	}
	return packets, listener, nil
}

// set replaces the records of a name, in the form of a zone file without the
// name: "60 A 192.0.2.1".
func (s *server) set(name string, records ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[name] = records
}

func (s *server) fail(name string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[name] = code
}

func (s *server) edit(edit func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit()
}

// count is how often a question was asked: "name type".
func (s *server) count(question string) int { return s.begin(question + " ") }

// begin is how many questions began so.
func (s *server) begin(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, q := range s.asked {
		if strings.HasPrefix(q, prefix) {
			n++
		}
	}
	return n
}

func (s *server) handler(network string) wire.HandlerFunc {
	return func(w wire.ResponseWriter, q *wire.Msg) {
		if reply := s.answer(q, network); reply != nil {
			w.WriteMsg(reply)
		}
	}
}

func (s *server) answer(q *wire.Msg, network string) *wire.Msg {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, kind := strings.ToLower(q.Question[0].Name), wire.TypeToString[q.Question[0].Qtype]
	s.asked = append(s.asked, name+" "+kind+" "+network+" ")
	if s.silent || slices.ContainsFunc(s.mute, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return nil
	}
	reply := new(wire.Msg).SetReply(q)
	if s.foreign {
		reply.Question[0].Name = "other.test."
	}
	records, ok := s.records[name]
	switch code := s.fails[name]; {
	case code != 0:
		reply.Rcode = code
		return reply
	case !ok:
		reply.Rcode = wire.RcodeNameError
		return reply
	}
	s.fill(reply, name, kind, records)
	if network == "udp" {
		reply.Truncate(wire.MinMsgSize)
	}
	return reply
}

// fill follows aliases, as resolvers do.
func (s *server) fill(reply *wire.Msg, name, kind string, records []string) {
	for _, text := range records {
		record, err := wire.NewRR(name + " " + text)
		if err != nil {
			s.t.Errorf("%s %s: %v", name, text, err)
			continue
		}
		switch alias, isAlias := record.(*wire.CNAME); {
		case isAlias:
			reply.Answer = append(reply.Answer, record)
			s.fill(reply, alias.Target, kind, s.records[alias.Target])
		case wire.TypeToString[record.Header().Rrtype] == kind:
			reply.Answer = append(reply.Answer, record)
		}
	}
}

// file writes a file for the source to read.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
