package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/profiler"
)

// profilerOptions are the flags of the profiles of the Go runtime.
type profilerOptions struct {
	profiling       bool
	profilerAddress net.IP
	profilerPort    uint16
}

func (o *profilerOptions) addProfilerFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.profiling, "profiling", true, "serve profiles of Headgate at /debug/pprof/, by --profiler-address and --profiler-port")
	f.IPVar(&o.profilerAddress, "profiler-address", net.IPv4(127, 0, 0, 1), "IP address for profiles")
	f.Uint16Var(&o.profilerPort, "profiler-port", 10245, "port for profiles")
}

// profilerPorts is the port of profiles, if they are served.
func (o profilerOptions) profilerPorts() []portFlag {
	if !o.profiling {
		return nil
	}
	return []portFlag{{"profiler-port", o.profilerPort}}
}

// startProfiler opens the port; nil without --profiling.
func (o profilerOptions) startProfiler(log *slog.Logger) (*profiler.Server, error) {
	if !o.profiling {
		return nil, nil
	}
	ip, _ := netip.AddrFromSlice(o.profilerAddress)
	address := netip.AddrPortFrom(ip.Unmap(), o.profilerPort)
	server, err := profiler.Listen(address.String(), log)
	if err != nil {
		return nil, fmt.Errorf("--profiler-port: %w; set another port or --profiling=false", nginx.ExplainPort(address, err))
	}
	return server, nil
}
