package nginxconf

import "github.com/headgate/headgate/internal/model"

// usualConnections are those of a worker where the number of files is not known.
const usualConnections = 16384

// worker is the settings of workers as nginx.conf has them.
type worker struct {
	model.WorkerSettings
	env       Environment
	processes int
	// addresses is how many are listened on.
	addresses int
}

// ConnectionCount is the number of connections of a worker. NGINX does not start with fewer
// than it has sockets to listen on.
func (w worker) ConnectionCount() int {
	n := w.Connections
	if n == 0 {
		n = w.FileCount() * 3 / 4
	}
	if n == 0 {
		n = usualConnections
	}
	return max(n, w.fewestConnections())
}

// With SO_REUSEPORT each worker has sockets of its own for http, https and HTTP/3. The others
// are those of further ports and of unix sockets. The spare ones keep a few idle clients from
// shutting out the controller, which changes the number.
func (w worker) fewestConnections() int {
	const shared, spare = 3, 512
	return shared*w.addresses*w.processes + w.addresses + spare
}

// FileCount is the number of files that a worker may open, 0 to leave it to the system.
func (w worker) FileCount() int {
	if w.OpenFiles > 0 && (w.env.OpenFiles == 0 || w.OpenFiles < w.env.OpenFiles) {
		return w.OpenFiles
	}
	return w.env.OpenFiles
}

// hashes are the sizes of hash tables as nginx.conf has them.
type hashes struct {
	model.HashSizes
	// skipped is the size that the list of requests without a line in the access log needs.
	skipped int
}

// Map is 0 for NGINX's own.
func (h hashes) Map() int { return max(h.MapBucket, h.skipped) }

// Bucket and Max are those of variables, of which Headgate has many.
func (h hashes) Bucket() int { return max(h.VariablesBucket, 256) }

// Max is the number of buckets.
func (h hashes) Max() int { return max(h.VariablesMax, 2048) }
