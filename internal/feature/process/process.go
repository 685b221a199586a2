// Package process has the settings of the NGINX process. They apply to all routes,
// and a change costs a reload.
package process

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

// Limits of values. NGINX has none, but a larger value is a typo.
const (
	maxWorkers     = 1024
	maxConnections = 1 << 20
	maxSeconds     = 365 * 24 * 3600
	maxReloads     = 1000
)

var (
	workers = feature.Setting[int]{
		Key: "worker-processes", Parse: workerCount, Scope: feature.ScopeProcess,
		Doc: "Number of worker processes. auto: one for each CPU core.",
	}
	shutdownTimeout = feature.Setting[time.Duration]{
		Key: "worker-shutdown-timeout", Default: 240 * time.Second, Parse: quantity.Duration, Scope: feature.ScopeProcess,
		Doc: "Maximum time for which old workers continue to serve their connections after a reload or at shutdown.",
	}
	reloadBurst = feature.Setting[int]{
		Key: "reload-burst", Default: model.ReloadBurst, Parse: feature.Int(1, maxReloads), Scope: feature.ScopeProcess,
		Doc: "Number of reloads that Ingresses can cause at once, by combinations of static settings that NGINX does not have yet. A change of this ConfigMap is not counted.",
	}
	reloadInterval = feature.Setting[time.Duration]{
		Key: "reload-interval", Default: model.ReloadInterval, Parse: quantity.Duration, Scope: feature.ScopeProcess,
		Doc: "Time until Ingresses can cause one more reload; a part of it while the workers of few earlier reloads serve connections. A namespace that had none in this time gets one in any case. Meanwhile, the nearest stricter combination of static settings is used.",
	}
	reloadGenerations = feature.Setting[int]{
		Key: "reload-generations", Default: model.OldGenerations, Parse: feature.Int(1, maxReloads), Scope: feature.ScopeProcess,
		Doc: "Number of earlier reloads whose workers may still serve connections when Ingresses cause the next one.",
	}
	serialReloads = feature.Setting[bool]{
		Key: "enable-serial-reloads", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "The same as 1 for reload-generations: a reload that Ingresses cause waits until the workers of all earlier ones have ended.",
	}
	defaultType = feature.Setting[model.MIMEType]{
		Key: "default-type", Parse: model.NewMIMEType, Scope: feature.ScopeProcess,
		Doc: "Content type of responses of NGINX's own without one, such as those of lines of the administrator.",
	}
	serverTokens = feature.Setting[bool]{
		Key: "server-tokens", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Keeps the Server header in responses.",
	}
	backendServer = feature.Setting[bool]{
		Key: "allow-backend-server-header", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Keeps the Server header of backends in responses.",
	}
	hiddenHeaders = feature.Setting[names.Headers]{
		Key: "hide-headers", Parse: parseHeaders, OnInvalid: feature.UseStrictest, Scope: feature.ScopeProcess,
		Doc: "Headers that are removed from the responses of backends, separated by commas. Headgate still reads them in responses of auth services.",
	}
	keepAlive = feature.Setting[time.Duration]{
		Key: "keep-alive", Default: 75 * time.Second, Parse: quantity.Seconds(0, maxSeconds), Scope: feature.ScopeProcess,
		Doc: "Maximum number of seconds that a client connection can be idle. 0 closes it after each response.",
	}
	keepAliveRequests = feature.Setting[int]{
		Key: "keep-alive-requests", Default: 1000, Parse: feature.Int(1, maxConnections), Scope: feature.ScopeProcess,
		Doc: "Maximum number of requests over one client connection.",
	}
	clientHeaderTimeout = feature.Setting[time.Duration]{
		Key: "client-header-timeout", Default: 60 * time.Second, Parse: quantity.Seconds(1, maxSeconds), Scope: feature.ScopeProcess,
		Doc: "Maximum number of seconds in which a client must send the header of a request.",
	}
	clientBodyTimeout = feature.Setting[time.Duration]{
		Key: "client-body-timeout", Default: 60 * time.Second, Parse: quantity.Seconds(1, maxSeconds), Scope: feature.ScopeProcess,
		Doc: "Maximum number of seconds between two reads of a request body.",
	}
	backendConnections = feature.Setting[int]{
		Key: "upstream-keepalive-connections", Default: 320, Parse: feature.Int(0, maxConnections), Scope: feature.ScopeProcess,
		Doc: "Number of idle connections to endpoints that a worker has room for. It keeps up to 8 times as many, and at most 4096 or this number, so that namespaces with many endpoints do not push out those of others. 0 keeps none.",
	}
	backendRequests = feature.Setting[int]{
		Key: "upstream-keepalive-requests", Default: 10000, Parse: feature.Int(1, maxConnections), Scope: feature.ScopeProcess,
		Doc: "Maximum number of requests over one connection to an endpoint.",
	}
	backendIdle = feature.Setting[time.Duration]{
		Key: "upstream-keepalive-timeout", Default: 60 * time.Second, Parse: quantity.Seconds(1, maxSeconds), Scope: feature.ScopeProcess,
		Doc: "Maximum number of seconds that a connection to an endpoint can be idle.",
	}
	upgrades = feature.Setting[names.Upgrades]{
		Key: "upgrade-protocols", Default: websocket(), Parse: parseUpgrades, Scope: feature.ScopeProcess,
		Doc: "Protocols that clients may ask backends to change to by the header Upgrade, separated by commas. For others, the header is removed.",
	}
	backendAge = feature.Setting[time.Duration]{
		Key: "upstream-keepalive-time", Default: time.Hour, Parse: quantity.Duration, Scope: feature.ScopeProcess,
		Doc: "Maximum age of a connection to an endpoint.",
	}
)

const (
	maxUpgrades = 16
	maxHeaders  = 100
)

// parseHeaders returns beside an error what can be hidden.
func parseHeaders(text string) (names.Headers, error) {
	list, err := feature.List(text)
	if err == nil && len(list) > maxHeaders {
		list, err = list[:maxHeaders], fmt.Errorf("must be at most %d headers", maxHeaders)
	}
	headers, bad := names.NewHeaders(list...)
	return headers, cmp.Or(err, bad)
}

func parseUpgrades(text string) (names.Upgrades, error) {
	list, err := feature.List(text)
	if err == nil && len(list) > maxUpgrades {
		err = fmt.Errorf("must be at most %d protocols", maxUpgrades)
	}
	if err != nil {
		return names.Upgrades{}, err
	}
	return names.NewUpgrades(list...)
}

func websocket() names.Upgrades {
	u, err := names.NewUpgrades("websocket")
	if err != nil {
		panic(err)
	}
	return u
}

func workerCount(text string) (int, error) {
	if text == "auto" {
		return 0, nil
	}
	n, err := feature.Int(1, maxWorkers)(text)
	if err != nil {
		return 0, errors.New("must be auto or " + strings.TrimPrefix(err.Error(), "must be "))
	}
	return n, nil
}

// Feature is the settings of the NGINX process.
func Feature() feature.Feature {
	return feature.Feature{
		Name: "process",
		Doc:  "Settings of the NGINX process: workers and connections.",
		Settings: []feature.AnySetting{
			workers, shutdownTimeout, reloadBurst, reloadInterval, reloadGenerations, serialReloads, defaultType, serverTokens, backendServer, hiddenHeaders,
			keepAlive, keepAliveRequests, clientHeaderTimeout, clientBodyTimeout,
			backendConnections, backendRequests, backendIdle, backendAge, upgrades,
		},
		Process: apply,
	}
}

func apply(v feature.Values, out *feature.ProcessOut) {
	p := out.Process
	p.Workers = workers.Get(v)
	p.ShutdownTimeout = shutdownTimeout.Get(v)
	p.ReloadBurst = reloadBurst.Get(v)
	p.ReloadInterval = reloadInterval.Get(v)
	p.OldGenerations = reloadGenerations.Get(v)
	if serialReloads.Get(v) {
		p.OldGenerations = 1
	}
	p.DefaultType = defaultType.Get(v)
	p.ServerTokens = serverTokens.Get(v)
	p.BackendServer = backendServer.Get(v)
	p.HiddenHeaders = hiddenHeaders.Get(v)
	p.ClientKeepalive = keepAlive.Get(v)
	p.ClientRequests = keepAliveRequests.Get(v)
	p.ClientHeaderTimeout = clientHeaderTimeout.Get(v)
	p.ClientBodyTimeout = clientBodyTimeout.Get(v)
	p.BackendConnections = backendConnections.Get(v)
	p.BackendRequests = backendRequests.Get(v)
	p.BackendIdle = backendIdle.Get(v)
	p.BackendAge = backendAge.Get(v)
	p.Upgrades = upgrades.Get(v)
}
