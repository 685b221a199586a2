package model

// Balancing is how the requests to a backend are spread. The oldest Ingress
// that uses the backend decides over it. Equal values compare as equal.
type Balancing struct {
	// ServiceAddress sends all requests to the address of the Service itself,
	// which spreads them by its own means.
	ServiceAddress bool
}
