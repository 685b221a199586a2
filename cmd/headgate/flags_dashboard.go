package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/adminapi/dashboard"
	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/history"
)

// dashboardOptions are the flags of the page for people.
type dashboardOptions struct{ dashboardAddress string }

func (o *dashboardOptions) addDashboardFlags(f *pflag.FlagSet) {
	f.StringVar(&o.dashboardAddress, "dashboard-address", "", "address of a web page that shows hosts, backends, certificates, findings and changes, and explains requests: PORT for loopback alone, or HOST:PORT. It has no authentication. Without it, there is no page")
}

// checkDashboard rejects an address that can't be right.
func (o *dashboardOptions) checkDashboard() error {
	if o.dashboardAddress == "" {
		return nil
	}
	if _, _, err := o.dashboardPlace(); err != nil {
		return invalidValue(o.dashboardAddress, "dashboard-address", "a port or HOST:PORT, such as 8000 or [::1]:8000")
	}
	return nil
}

// dashboardPlace is the host and port of the page. The host is 127.0.0.1 unless one is named.
func (o *dashboardOptions) dashboardPlace() (host string, port uint16, err error) {
	host, text := "", o.dashboardAddress
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
func (o *dashboardOptions) dashboardPorts() []portFlag {
	_, port, err := o.dashboardPlace()
	if o.dashboardAddress == "" || err != nil {
		return nil
	}
	return []portFlag{{"dashboard-address", port}}
}

// keep makes what the page shows, nil without it.
func (o *dashboardOptions) keep() (*overview.Table, *history.Log) {
	if o.dashboardAddress == "" {
		return nil, nil
	}
	return overview.New(), history.New()
}

// startAPI serves the controller's API on a socket until stop is called, and opens the port of
// the page; its server is nil without it.
func (o *dashboardOptions) startAPI(socket string, answers adminapi.Answers, log *slog.Logger) (page *dashboard.Server, stop func(), err error) {
	stopAPI, err := adminapi.Start(socket, answers, log)
	if err != nil {
		return nil, nil, err
	}
	page, err = o.startDashboard(answers, log)
	if err != nil {
		stopAPI()
		return nil, nil, err
	}
	return page, func() {
		// There is nothing to do about a port that can't be closed.
		_ = page.Close()
		stopAPI()
	}, nil
}

// startDashboard opens the port of the page; nil without it.
func (o *dashboardOptions) startDashboard(answers adminapi.Answers, log *slog.Logger) (*dashboard.Server, error) {
	if o.dashboardAddress == "" {
		return nil, nil
	}
	host, port, err := o.dashboardPlace()
	if err != nil {
		return nil, err
	}
	answers.Explain = forPage(answers.Explain)
	server, err := dashboard.Listen(net.JoinHostPort(host, strconv.Itoa(int(port))), adminapi.Handler(answers), log)
	if err != nil {
		address, parseErr := netip.ParseAddr(host)
		if parseErr == nil {
			err = nginx.ExplainPort(netip.AddrPortFrom(address, port), err)
		}
		return nil, fmt.Errorf("--dashboard-address: %w", err)
	}
	log.Info("the page for people", "url", "http://"+server.Address()+"/")
	return server, nil
}
