package option

import (
	"fmt"
	"strings"
	"testing"
)

// TestDashboardAddress: the page is on loopback unless a host is named.
func TestDashboardAddress(t *testing.T) {
	for text, want := range map[string]string{
		"8000": "127.0.0.1 8000", ":8000": "127.0.0.1 8000", "[::1]:8000": "::1 8000", "0.0.0.0:80": "0.0.0.0 80", "localhost:1": "localhost 1",
		"0": "", "65536": "", "host": "", "host:": "", "::1": "", "a:b:1": "", "127.0.0.1:http": "", "-1": "", ":0": "",
	} {
		o := Dashboard{text}
		host, port, err := o.DashboardPlace()
		wantHost, wantPort, valid := strings.Cut(want, " ")
		if got := o.checkDashboard(); (got == nil) != valid || (err == nil) != valid {
			t.Errorf("%q: %v, %v", text, err, got)
			continue
		}
		ports := o.dashboardPorts()
		if !valid {
			if len(ports) > 0 {
				t.Errorf("%q: %v", text, ports)
			}
			continue
		}
		if host != wantHost || fmt.Sprint(port) != wantPort || len(ports) != 1 || ports[0].Port != port {
			t.Errorf("%q: %s %d, want %s; %v", text, host, port, want, ports)
		}
	}
	if o := (Dashboard{}); o.checkDashboard() != nil || o.dashboardPorts() != nil {
		t.Error("without the flag there is no port")
	}
}
