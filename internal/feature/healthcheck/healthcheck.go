// Package healthcheck has the controller check the endpoints of a backend, so that those that
// fail get no requests.
package healthcheck

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/address"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

// The protocols of checks.
const (
	off     = "off"
	byHTTP  = "http"
	byHTTPS = "https"
	byGRPC  = "grpc"
	byGRPCS = "grpcs"
)

var protocols = []string{off, byHTTP, byHTTPS, byGRPC, byGRPCS}

const (
	defaultPath = "/"

	maxTarget    = 200 // bytes of a path or of the name of a gRPC service
	maxThreshold = 100

	minInterval, maxInterval = time.Second, 10 * time.Minute
	minTimeout, maxTimeout   = 100 * time.Millisecond, 30 * time.Second
)

var (
	protocol = feature.Setting[string]{
		Annotation: "health-check", Default: off, Parse: parseProtocol,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Medium,
		Doc: "Checks the endpoints of the backend by requests of the controller: http and https by a GET, which must be answered with a status from 200 to 399; grpc and grpcs " +
			"by the health service of gRPC, whose answer must be SERVING. An endpoint whose checks fail gets no requests until they succeed again, unless the checks of all " +
			"endpoints fail. An endpoint is healthy until then. The certificates of https and grpcs are not verified.",
	}
	path = feature.Setting[string]{
		Annotation: "health-check-path", Default: defaultPath, Parse: parsePath,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Medium,
		Doc: "The path of the GET, with an optional query. Redirects are not followed.",
	}
	service = feature.Setting[string]{
		Annotation: "health-check-grpc-service", Parse: feature.Optional(parseService),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Medium,
		Doc: "The service to ask the health service of gRPC for. By default, it is the server as a whole.",
	}
	host = feature.Setting[string]{
		Annotation: "health-check-host", Parse: feature.Optional(parseHost),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Medium,
		Doc: "The Host header of checks, and the server name of their TLS connections. By default, it is the address of the endpoint.",
	}
	port = feature.Setting[int]{
		Annotation: "health-check-port", Parse: feature.Optional(feature.Int(1, 65535)),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Medium,
		Doc: "The port of the endpoints to check, if it is another one than that for requests.",
	}
	interval = feature.Setting[time.Duration]{
		Annotation: "health-check-interval", Key: "health-check-interval", Default: 10 * time.Second, Parse: between(minInterval, maxInterval),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Medium,
		Doc: "The time between two checks of an endpoint. It varies by a tenth. Each replica of Headgate makes its own checks.",
	}
	timeout = feature.Setting[time.Duration]{
		Annotation: "health-check-timeout", Key: "health-check-timeout", Default: 2 * time.Second, Parse: between(minTimeout, maxTimeout),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Medium,
		Doc: "The longest time that a check takes, including the connection. If it takes longer, it fails.",
	}
	unhealthyThreshold = feature.Setting[int]{
		Annotation: "health-check-unhealthy-threshold", Key: "health-check-unhealthy-threshold", Default: 3, Parse: feature.Int(1, maxThreshold),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "How many checks of an endpoint must fail in a row until it gets no more requests.",
	}
	healthyThreshold = feature.Setting[int]{
		Annotation: "health-check-healthy-threshold", Key: "health-check-healthy-threshold", Default: 2, Parse: feature.Int(1, maxThreshold),
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "How many checks of an endpoint must succeed in a row until it gets requests again.",
	}
)

// Feature is health checks.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "health_check",
		Doc:      "Checks the endpoints of a backend, so that those that fail get no requests. ingress-nginx has no such checks.",
		Settings: []feature.AnySetting{protocol, path, service, host, port, interval, timeout, unhealthyThreshold, healthyThreshold},
		Backend:  backend,
	}
}

func backend(v feature.Values, out *feature.BackendOut) {
	by := protocol.Get(v)
	hasPath, hasService := by == byHTTP || by == byHTTPS, by == byGRPC || by == byGRPCS
	if !hasPath && path.Get(v) != defaultPath {
		out.Ignore(path, finding.InvalidValue, "it has no effect with health-check: "+by, "it is ignored")
	}
	if !hasService && service.Get(v) != "" {
		out.Ignore(service, finding.InvalidValue, "it has no effect with health-check: "+by, "it is ignored")
	}
	if by == off {
		return
	}
	target := path.Get(v)
	if hasService {
		target = service.Get(v)
	}
	out.Balancing.Check = model.HealthCheck{
		GRPC: hasService, TLS: by == byHTTPS || by == byGRPCS, Target: target, Host: host.Get(v), Port: uint16(port.Get(v)),
		Interval: interval.Get(v), Timeout: timeout.Get(v), Unhealthy: unhealthyThreshold.Get(v), Healthy: healthyThreshold.Get(v),
	}
}

func parseProtocol(text string) (string, error) {
	text = strings.ToLower(text)
	if text == "" {
		return off, nil
	}
	if !slices.Contains(protocols, text) {
		return "", fmt.Errorf("must be one of %s", strings.Join(protocols, ", "))
	}
	return text, nil
}

// pathForm has the bytes that a path or query may have, without those that must be escaped.
var pathForm = regexp.MustCompile(`^/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*$`)

func parsePath(text string) (string, error) {
	if text == "" {
		return defaultPath, nil
	}
	if len(text) > maxTarget || !pathForm.MatchString(text) {
		return "", fmt.Errorf("must be a path that starts with /, of at most %d letters, digits and -._~!$&'()*+,;=:@%%/?", maxTarget)
	}
	if _, err := url.ParseRequestURI(text); err != nil {
		return "", errors.New("must have two hexadecimal digits after each %")
	}
	return text, nil
}

var parseService = feature.Matching(`^[A-Za-z0-9._/-]+$`, maxTarget, "must be at most 200 letters, digits and ._/-")

// parseHost reads a name or address with an optional port, in lower case.
func parseHost(text string) (string, error) {
	if _, err := address.Authority(text, false); err != nil || strings.Contains(text, "$") {
		return "", errors.New("must be a host name or address, with an optional port")
	}
	return strings.ToLower(text), nil
}

// between returns a parser of times from shortest to longest.
func between(shortest, longest time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := quantity.Duration(text)
		if err != nil || d < shortest || d > longest {
			return 0, fmt.Errorf("must be from %s to %s, with ms, s, m, h or d (seconds without a unit)", inUnits(shortest), inUnits(longest))
		}
		return d, nil
	}
}

// inUnits writes a time as users do.
func inUnits(d time.Duration) string { return strings.Replace(d.String(), "m0s", "m", 1) }
