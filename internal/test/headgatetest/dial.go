package headgatetest

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// Dial opens a connection to a port of this machine. It ends with the test, and
// its deadline is Timeout from now.
func Dial(t testing.TB, port uint16) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", Address(port))
	must(t, err)
	t.Cleanup(func() { connection.Close() })
	must(t, connection.SetDeadline(time.Now().Add(Timeout)))
	return connection
}

// Address is the loopback address with a port, for dialing.
func Address(port uint16) string { return fmt.Sprintf("127.0.0.1:%d", port) }
