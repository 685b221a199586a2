package model

// Balancing is how the requests to a backend are spread. The oldest Ingress
// that uses the backend owns it. Equal values compare as equal.
type Balancing struct {
	// ServiceAddress sends all requests to the address of the Service itself,
	// which spreads them by its own means.
	ServiceAddress bool
	// Picker chooses the endpoint of each try: its feature has the Lua module
	// headgate.feature.NAME.picker, and the value is its settings, plain data that
	// compares with ==. The zero value is round robin.
	Picker Policy
	// Sessions is set if sessions stay at an endpoint until it ends: the picker, or that
	// of a backend that this one is a canary of, keeps sessions.
	Sessions bool
	// SlowStart gives an endpoint that is added its share of the requests gradually: its
	// feature has the Lua module headgate.feature.NAME.slow_start, and the value is the
	// number of seconds. The zero value is at once.
	SlowStart Policy
	// Ejection is which endpoints are avoided.
	Ejection Ejection
	// RetryBudget bounds retries.
	RetryBudget RetryBudget
	// Check is made of the endpoints by the controller. The data plane does not get it.
	Check HealthCheck
}

// Defaults of Ejection and RetryBudget, in percent.
const (
	EjectionShare = 50
	RetryShare    = 20
)

// Ejection is which failing endpoints are avoided. The zero value is the default: those to
// which no connection can be made.
type Ejection struct {
	// Off: none.
	Off bool
	// Share is the percentage of the endpoints that is avoided at most, 0 for the default.
	Share int
	// Failures is after how many failures in a row an endpoint is ejected for a time, 0 for
	// never; and Statuses are those that are failures, separated by spaces.
	Failures int
	Statuses string
	// Seconds is the time of the first such ejection.
	Seconds int
}

// A RetryBudget is the percentage of requests that may be retried. The zero value is the default.
type RetryBudget struct {
	Set     bool
	Percent int
}
