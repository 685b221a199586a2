package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// portOptions are the flags about ports and health checks.
type portOptions struct {
	httpPort, httpsPort, healthzPort uint16
	// defaultServerPort and statusPort are 0 to open none.
	defaultServerPort, statusPort uint16

	healthzHost, healthCheckPath string
	healthCheckTimeout           int
}

func (o *portOptions) addPortFlags(f *pflag.FlagSet) {
	f.Uint16Var(&o.httpPort, "http-port", 80, "port for http")
	f.Uint16Var(&o.httpsPort, "https-port", 443, "port for https")
	f.Uint16Var(&o.healthzPort, "healthz-port", 10254, "port for the health check and metrics")
	f.StringVar(&o.healthzHost, "healthz-host", "", "address for the health check and metrics (default: all)")
	f.StringVar(&o.healthCheckPath, "health-check-path", "/healthz", "path of the health check")
	f.IntVar(&o.healthCheckTimeout, "health-check-timeout", 10, "seconds in which NGINX must answer the health check")
	f.Uint16Var(&o.defaultServerPort, "default-server-port", 8181, "port that answers 404 to all requests; 0 opens none")
	f.Uint16Var(&o.statusPort, "status-port", 10246, "port on 127.0.0.1 for the status of NGINX; 0 opens none")
}

func (o *portOptions) checkPortFlags() error {
	if !strings.HasPrefix(o.healthCheckPath, "/") {
		return invalidValue(o.healthCheckPath, "health-check-path", "a path that begins with a slash")
	}
	if o.healthCheckTimeout < 1 {
		return invalidValue(o.healthCheckTimeout, "health-check-timeout", "1 or more")
	}
	return nil
}

// ports are those that are opened.
func (o *portOptions) ports() []portFlag {
	list := []portFlag{{"http-port", o.httpPort}, {"https-port", o.httpsPort}, {"healthz-port", o.healthzPort}}
	for _, p := range []portFlag{{"default-server-port", o.defaultServerPort}, {"status-port", o.statusPort}} {
		if p.port != 0 {
			list = append(list, p)
		}
	}
	return list
}

// A portFlag is a flag with a TCP port that Headgate listens on.
type portFlag struct {
	flag string
	port uint16
}

// checkPorts rejects port 0 and ports of two flags.
func checkPorts(ports []portFlag) error {
	for i, p := range ports {
		if p.port == 0 {
			return invalidValue(0, p.flag, "a port from 1 to 65535")
		}
		if other := slices.IndexFunc(ports[:i], func(other portFlag) bool { return other.port == p.port }); other >= 0 {
			return fmt.Errorf("--%s and --%s are both port %d: they must differ", ports[other].flag, p.flag, p.port)
		}
	}
	return nil
}

// flagsOf are the flags of ports, for errors.
func flagsOf(ports []portFlag) map[uint16]string {
	flags := map[uint16]string{}
	for _, p := range ports {
		flags[p.port] = "--" + p.flag
	}
	return flags
}

// healthAddress is the address of the health port. Host names are resolved by the
// listener.
func (o *portOptions) healthAddress() netip.AddrPort {
	address, err := netip.ParseAddr(o.healthzHost)
	if err != nil {
		address = netip.IPv4Unspecified()
	}
	return netip.AddrPortFrom(address, o.healthzPort)
}
