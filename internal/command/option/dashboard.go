package option

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/usage"
)

// Dashboard are the flags of the page for people.
type Dashboard struct{ DashboardAddress string }

func (o *Dashboard) addDashboardFlags(f *pflag.FlagSet) {
	f.StringVar(&o.DashboardAddress, "dashboard-address", "", "address of a web page that shows hosts, backends, certificates, findings and changes, and explains requests: PORT for loopback alone, or HOST:PORT. It has no authentication. Without it, there is no page")
}

// checkDashboard rejects an address that can't be right.
func (o *Dashboard) checkDashboard() error {
	if o.DashboardAddress == "" {
		return nil
	}
	if _, _, err := o.DashboardPlace(); err != nil {
		return usage.InvalidValue(o.DashboardAddress, "dashboard-address", "a port or HOST:PORT, such as 8000 or [::1]:8000")
	}
	return nil
}

// DashboardPlace is the host and port of the page. The host is 127.0.0.1 unless one is named.
func (o *Dashboard) DashboardPlace() (host string, port uint16, err error) {
	host, text := "", o.DashboardAddress
	if strings.Contains(text, ":") {
		if host, text, err = net.SplitHostPort(text); err != nil {
			return "", 0, fmt.Errorf("read the address: %w", err)
		}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err == nil && number == 0 {
		err = strconv.ErrRange
	}
	return host, uint16(number), err
}

// dashboardPorts is the port of the page, if there is one.
func (o *Dashboard) dashboardPorts() []PortFlag {
	_, port, err := o.DashboardPlace()
	if o.DashboardAddress == "" || err != nil {
		return nil
	}
	return []PortFlag{{"dashboard-address", port}}
}
