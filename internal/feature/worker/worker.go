// Package worker has the settings of NGINX's worker processes: how many connections and files
// each may have, the processors that they run on, and how they take connections.
package worker

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Bounds of values. A worker needs files for its sockets and logs before it has a connection.
const (
	maxConnections     = 1 << 20
	minFiles, maxFiles = 1024, 1 << 20
	usualConnections   = 16384
	debugged           = "debug-connections"
)

var (
	connections = feature.Setting[int]{
		Key: "max-worker-connections", Default: usualConnections, Parse: feature.Int(0, maxConnections), Scope: feature.ScopeProcess,
		Doc: "Maximum number of connections of a worker, those to backends included. 0: three quarters of the files that a worker may open. A worker has at least what its listeners need. See [tuning.md](tuning.md).",
	}
	openFiles = feature.Setting[int]{
		Key: "max-worker-open-files", Parse: parseFiles, Scope: feature.ScopeProcess,
		Doc: "Maximum number of files, connections included, that a worker has open. 0, and more than the hard limit of the controller's process: that limit.",
	}
	affinity = feature.Setting[model.CPUAffinity]{
		Key: "worker-cpu-affinity", Parse: model.NewCPUAffinity, Scope: feature.ScopeProcess,
		Doc: "The processors of workers: a mask for each worker, `auto`, or `auto` and a mask of the processors to use. Without it, the kernel decides.",
	}
	multiAccept = feature.Setting[bool]{
		Key: "enable-multi-accept", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Has a worker accept all connections that wait at once, instead of one at a time.",
	}
	aioWrite = feature.Setting[bool]{
		Key: "enable-aio-write", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Has threads, 32 for each worker, write and send responses that don't fit into buffers, so that a worker never waits for a slow disk.",
	}
	debug = feature.Setting[entries]{
		Key: debugged, Parse: parseEntries, Scope: feature.ScopeProcess,
		Doc: "IP addresses and networks, separated by commas, of clients about which NGINX logs everything, secrets in headers included. Invalid entries are left out.",
	}
)

func parseFiles(text string) (int, error) {
	n, err := feature.Int(0, maxFiles)(text)
	if err != nil || n > 0 && n < minFiles {
		return 0, fmt.Errorf("must be 0 or an integer from %d to %d", minFiles, maxFiles)
	}
	return n, nil
}

// entries are networks, with the error about others.
type entries struct {
	networks model.Networks
	bad      error
}

// String is the list of networks.
func (e entries) String() string {
	if len(e.networks) == 0 {
		return ""
	}
	return e.networks.String()
}

func parseEntries(text string) (entries, error) {
	networks, err := model.ParseNetworks(text)
	if err != nil && len(networks) == 0 {
		return entries{}, err
	}
	return entries{networks, err}, nil
}

// Feature is the settings of workers.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "worker_process",
		Doc:      "Settings of NGINX's worker processes: connections, files, processors.",
		Settings: []feature.AnySetting{connections, openFiles, affinity, multiAccept, aioWrite, debug},
		Process:  apply,
	}
}

func apply(v feature.Values, out *feature.ProcessOut) {
	out.Process.Worker = model.WorkerSettings{
		Connections: connections.Get(v), OpenFiles: openFiles.Get(v), CPUs: affinity.Get(v),
		MultiAccept: multiAccept.Get(v), WritesInThreads: aioWrite.Get(v), Debugged: clients(v, out),
	}
}

// clients are those that are debugged: none by an NGINX that can't.
func clients(v feature.Values, out *feature.ProcessOut) model.Networks {
	list := debug.Get(v)
	if list.bad != nil {
		out.Warn(debug, finding.InvalidValue, "invalid entries "+finding.Shorten(strings.TrimSpace(list.bad.Error())), "the other entries are used")
	}
	if len(list.networks) > 0 && !v.Has(feature.DebugLog) {
		out.Reject(debug, finding.MissingCapability, "this NGINX was built without --with-debug")
		return nil
	}
	return list.networks
}
