package nginx

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestCheckPorts(t *testing.T) {
	taken := make(map[string]netip.AddrPort)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		taken[address] = netip.MustParseAddrPort(listener.Addr().String())
	}
	v4, v6 := taken["127.0.0.1:0"], taken["[::1]:0"]
	free := freeAddress(t)
	any4 := netip.AddrPortFrom(netip.IPv4Unspecified(), v4.Port())
	if err := CheckPorts([]netip.AddrPort{free, netip.AddrPortFrom(netip.IPv6Unspecified(), free.Port())}, nil); err != nil {
		t.Errorf("free ports: %v", err)
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	by := fmt.Sprintf("is in use by %s (process %d)", strings.TrimSpace(string(comm)), os.Getpid())
	err = CheckPorts([]netip.AddrPort{v4, free, any4, v6}, nil)
	want := fmt.Sprintf("%s %s\n%s %s\n%s %s", v4, by, any4, by, v6, by)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	err = CheckPorts([]netip.AddrPort{free, free}, nil)
	if err == nil || !strings.Contains(err.Error(), "configured twice") {
		t.Error(err)
	}
	// No host has an address of 192.0.2.0/24.
	if err := CheckPorts([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:80")}, nil); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Error(err)
	}
}

func TestPortError(t *testing.T) {
	address := netip.MustParseAddrPort("0.0.0.0:80")
	want := "can't listen on 0.0.0.0:80: privileged ports need root or CAP_NET_BIND_SERVICE"
	if err := explain(address, syscall.EACCES); err.Error() != want {
		t.Error(err)
	}
}

// The check leaves nothing that would take a connection or the port.
func TestCheckPortsTakesNothing(t *testing.T) {
	address := freeAddress(t)
	if err := CheckPorts([]netip.AddrPort{address}, nil); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}

func TestListeners(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	const row = "   0: %s 00000000:0000 %s 00000000:00000000 00:00000000 00000000     0        0 %d 1 0 100 0 0 10 0\n"
	table := filepath.Join(t.TempDir(), "tcp")
	text := head +
		fmt.Sprintf(row, "0100007F:1F90", "0A", 1) + // 127.0.0.1:8080 listens
		fmt.Sprintf(row, "0100007F:1F90", "01", 2) + // a connection of it
		fmt.Sprintf(row, "0200007F:1F90", "0A", 3) + // 127.0.0.2:8080 listens
		fmt.Sprintf(row, "00000000:1F91", "0A", 4) + // 0.0.0.0:8081 listens
		fmt.Sprintf(row, "00000000000000000000000001000000:1F92", "0A", 5) + // [::1]:8082 listens
		fmt.Sprintf(row, "0000000000000000FFFF00000100007F:1F93", "0A", 6) + // [::ffff:127.0.0.1]:8083 listens
		"short row\n" + fmt.Sprintf(row, "zz:1F90", "0A", 7)
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"127.0.0.1:8080": "[1]",
		"0.0.0.0:8080":   "[1 3]",
		"127.0.0.1:8081": "[4]",
		"[::1]:8082":     "[5]",
		"127.0.0.1:8083": "[6]",
		"127.0.0.1:8084": "[]",
	} {
		if got := fmt.Sprint(listeners(table, netip.MustParseAddrPort(address))); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := listeners(table+"none", netip.MustParseAddrPort("127.0.0.1:8080")); got != nil {
		t.Error(got)
	}
}
