package run

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/profiler"
)

// startProfiler opens the port; nil without --profiling.
func (o program) startProfiler(log *slog.Logger) (*profiler.Server, error) {
	if !o.Profiling {
		return nil, nil
	}
	ip, _ := netip.AddrFromSlice(o.ProfilerAddress)
	address := netip.AddrPortFrom(ip.Unmap(), o.ProfilerPort)
	server, err := profiler.Listen(address.String(), log)
	if err != nil {
		return nil, fmt.Errorf("--profiler-port: %w; set another port or --profiling=false", nginx.ExplainPort(address, err))
	}
	return server, nil
}
