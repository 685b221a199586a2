package traffic

// A Report is what one worker has counted since its last one.
type Report struct {
	Groups []Group `json:"groups"`
	// WithoutIngress is the number of requests that were not counted, since they are of no
	// Ingress.
	WithoutIngress uint64 `json:"without_ingress"`
}

// A Group is the requests of a route of a host.
type Group struct {
	// Unit is the name of the host's unit, empty for none.
	Unit      string `json:"unit"`
	Host      string `json:"host"`
	Namespace string `json:"namespace"`
	Ingress   string `json:"ingress"`
	Service   string `json:"service"`
	Path      string `json:"path"`
	// Canary is the backend that was asked instead of the route's own.
	Canary string   `json:"canary"`
	Series []Series `json:"series"`
}

// A Series is the requests among them with one method and status.
type Series struct {
	Method string `json:"method"`
	Status string `json:"status"`
	// Counts are pairs of a place and what is added there, see places.
	Counts []uint64 `json:"counts"`
	// Native has for each histogram that may be native the number of values that are 0, and
	// then pairs of a bucket and what is added to it. It is nil without native histograms.
	Native [][]int64 `json:"native"`
}

func (g Group) route() route { return route{g.Namespace, g.Ingress, g.Service, g.Path} }

func (g Group) labels(s Series) labels {
	return labels{route: g.route(), host: g.Host, canary: g.Canary, method: s.Method, status: s.Status}
}
