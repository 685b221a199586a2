package option

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/usage"
)

// Ports are the flags about ports and health checks.
type Ports struct {
	HTTPPort, HTTPSPort, HealthzPort uint16
	// DefaultServerPort and StatusPort are 0 to open none.
	DefaultServerPort, StatusPort uint16

	HealthzHost, HealthCheckPath string
	// HealthCheckTimeout is in seconds.
	HealthCheckTimeout int
}

func (o *Ports) addPortFlags(f *pflag.FlagSet) {
	f.Uint16Var(&o.HTTPPort, "http-port", 80, "port for http")
	f.Uint16Var(&o.HTTPSPort, "https-port", 443, "port for https")
	f.Uint16Var(&o.HealthzPort, "healthz-port", 10254, "port for the health check and metrics")
	f.StringVar(&o.HealthzHost, "healthz-host", "", "address for the health check and metrics (default: all)")
	f.StringVar(&o.HealthCheckPath, "health-check-path", "/healthz", "path of the health check")
	f.IntVar(&o.HealthCheckTimeout, "health-check-timeout", 10, "seconds in which NGINX must answer the health check")
	f.Uint16Var(&o.DefaultServerPort, "default-server-port", 8181, "port that answers 404 to all requests; 0 opens none")
	f.Uint16Var(&o.StatusPort, "status-port", 10246, "port on 127.0.0.1 for the status of NGINX; 0 opens none")
}

func (o *Ports) checkPortFlags() error {
	if !strings.HasPrefix(o.HealthCheckPath, "/") {
		return usage.InvalidValue(o.HealthCheckPath, "health-check-path", "a path that begins with a slash")
	}
	if o.HealthCheckTimeout < 1 {
		return usage.InvalidValue(o.HealthCheckTimeout, "health-check-timeout", "1 or more")
	}
	return nil
}

// open are the ports that are opened.
func (o *Ports) open() []PortFlag {
	list := []PortFlag{{"http-port", o.HTTPPort}, {"https-port", o.HTTPSPort}, {"healthz-port", o.HealthzPort}}
	for _, p := range []PortFlag{{"default-server-port", o.DefaultServerPort}, {"status-port", o.StatusPort}} {
		if p.Port != 0 {
			list = append(list, p)
		}
	}
	return list
}

// A PortFlag is a flag with a TCP port that Headgate listens on.
type PortFlag struct {
	Flag string
	Port uint16
}

// checkPorts rejects port 0 and ports of two flags.
func checkPorts(ports []PortFlag) error {
	for i, p := range ports {
		if p.Port == 0 {
			return usage.InvalidValue(0, p.Flag, "a port from 1 to 65535")
		}
		if other := slices.IndexFunc(ports[:i], func(other PortFlag) bool { return other.Port == p.Port }); other >= 0 {
			return fmt.Errorf("--%s and --%s are both port %d: they must differ", ports[other].Flag, p.Flag, p.Port)
		}
	}
	return nil
}

// FlagsOf are the flags of ports, for errors.
func FlagsOf(ports []PortFlag) map[uint16]string {
	flags := map[uint16]string{}
	for _, p := range ports {
		flags[p.Port] = "--" + p.Flag
	}
	return flags
}

// HealthAddress is the address of the health port. Host names are resolved by the
// listener.
func (o *Ports) HealthAddress() netip.AddrPort {
	address, err := netip.ParseAddr(o.HealthzHost)
	if err != nil {
		address = netip.IPv4Unspecified()
	}
	return netip.AddrPortFrom(address, o.HealthzPort)
}

// ReservedPorts are the ports that TCP and UDP services can't have, with the flags that set
// them: those of ingress-nginx, whether Headgate listens on them or not.
func ReservedPorts(f *pflag.FlagSet) map[uint16]string {
	ports := map[uint16]string{}
	for _, name := range []string{
		"http-port", "https-port", "healthz-port", "default-server-port", "ssl-passthrough-proxy-port", "status-port", "stream-port", "profiler-port",
	} {
		flag := f.Lookup(name)
		if flag == nil {
			continue
		}
		if port, err := strconv.ParseUint(flag.Value.String(), 10, 16); err == nil && ports[uint16(port)] == "" {
			ports[uint16(port)] = "--" + name
		}
	}
	return ports
}
