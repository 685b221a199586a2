package headgatetest

import (
	"net"
	"testing"
)

// A Syslog is a server of syslog over UDP. It keeps what it gets, a line for each packet.
type Syslog struct {
	net.PacketConn
	Log
}

// StartSyslog runs a server on loopback until the test ends.
func StartSyslog(t testing.TB) *Syslog {
	t.Helper()
	connection, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	s := &Syslog{PacketConn: connection}
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, _, err := connection.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = s.Write(append(b[:n:n], '\n'))
		}
	}()
	return s
}
