package option

import (
	"net"

	"github.com/spf13/pflag"
)

// Profiler are the flags of the profiles of the Go runtime.
type Profiler struct {
	Profiling       bool
	ProfilerAddress net.IP
	ProfilerPort    uint16
}

func (o *Profiler) addProfilerFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.Profiling, "profiling", true, "serve profiles of Headgate at /debug/pprof/, by --profiler-address and --profiler-port")
	f.IPVar(&o.ProfilerAddress, "profiler-address", net.IPv4(127, 0, 0, 1), "IP address for profiles")
	f.Uint16Var(&o.ProfilerPort, "profiler-port", 10245, "port for profiles")
}

// profilerPorts is the port of profiles, if they are served.
func (o Profiler) profilerPorts() []PortFlag {
	if !o.Profiling {
		return nil
	}
	return []PortFlag{{"profiler-port", o.ProfilerPort}}
}
