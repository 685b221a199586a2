// Package proxying has the settings of proxying: buffers, the limit of request
// bodies, timeouts and retries.
package proxying

import (
	"embed"
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

const name = "proxying"

//go:embed *.lua
var lua embed.FS

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Limits of what tenants may write. A buffer's size and number are rounded up
// to powers of two, so that few profiles serve all values.
const (
	minBuffer  = kib
	maxBuffer  = 16 * mib
	minBuffers = 2
	maxBuffers = 256
	maxBody    = 500 * gib
	maxSeconds = 365 * 24 * 3600
	// maxKept is the largest part of a body that is kept in memory, and of an
	// answer if two buffers leave it a choice, also if the tenant asks for more: the
	// rest goes to a file, or is read later. An attack can have many slow clients.
	maxKept = 8 * mib
	// maxFile is the largest file that an answer may fill.
	maxFile = 64 * gib
)

var (
	buffering = feature.Setting[bool]{
		Annotation: "proxy-buffering", Key: "proxy-buffering", Default: false, Parse: feature.Either("on", "off"), Risk: feature.Low,
		Doc: "Buffers responses of backends.",
	}
	requestBuffering = feature.Setting[bool]{
		Annotation: "proxy-request-buffering", Key: "proxy-request-buffering", Default: true, Parse: feature.Either("on", "off"), Risk: feature.Low,
		Doc: "Reads the whole request body before the request is sent to the backend.",
	}
	bufferSize = feature.Setting[int64]{
		Annotation: "proxy-buffer-size", Key: "proxy-buffer-size", Default: 4 * kib, Parse: quantity.Size(1, maxBuffer), Risk: feature.Low,
		Doc: "Size of one response buffer, rounded up to a power of two. The headers of a response must fit into it.",
	}
	buffers = feature.Setting[int]{
		Annotation: "proxy-buffers-number", Key: "proxy-buffers-number", Default: 4, Parse: feature.Int(minBuffers, maxBuffers), Risk: feature.Low,
		Doc: "Number of buffers for one response, rounded up to a power of two.",
	}
	bodySize = feature.Setting[int64]{
		Annotation: "proxy-body-size", Key: "proxy-body-size", Default: mib, Parse: quantity.Size(0, maxBody), Risk: feature.Medium,
		Doc: "Maximum size of a request body. Requests with a larger body are answered 413. 0: no limit.",
	}
	bodyBuffer = feature.Setting[int64]{
		Annotation: "client-body-buffer-size", Key: "client-body-buffer-size", Default: 8 * kib, Parse: quantity.Size(0, maxBody), Risk: feature.Low,
		Doc: "Maximum size of the part of a request body that is kept in memory, rounded up to a power of two, from 1k to 8m. The rest is written to a file.",
	}
	busyBuffers = feature.Setting[int64]{
		Annotation: "proxy-busy-buffers-size", Key: "proxy-busy-buffers-size", Default: 0, Parse: feature.Optional(quantity.Size(1, maxBuffers*maxBuffer)), Risk: feature.Low,
		Doc: "Maximum size of the buffers that are sent to the client while the response is still being read, rounded up to a power of two. It is at least one buffer and at most half of all buffers. The default is two buffers.",
	}
	tempFile = feature.Setting[int64]{
		Annotation: "proxy-max-temp-file-size", Key: "proxy-max-temp-file-size", Default: gib, Parse: quantity.Size(0, maxFile), Risk: feature.Low,
		Doc: "Maximum size of the temporary file for a response that does not fit into the buffers, rounded up to a power of two; at least one buffer. 0 disables the file.",
	}
	httpVersion = feature.Setting[bool]{
		Annotation: "proxy-http-version", Key: "proxy-http-version", Default: false, Parse: feature.Either("1.0", "1.1"), Risk: feature.Low,
		Doc: "The HTTP version of requests to backends, 1.0 or 1.1 (the default).",
	}
	grpcBuffer = feature.Setting[int]{
		Key: "grpc-buffer-size-kb", Parse: feature.Int(0, maxBuffer/kib),
		Doc: "The size in KB of the buffer for the start of a response of a gRPC backend, rounded up to a power of two. 0 means 4. proxy-buffer-size does not apply to them.",
	}
	connectTimeout = timeout("proxy-connect-timeout", standard.Connect, "Maximum number of seconds for connecting to an endpoint.")
	readTimeout    = timeout("proxy-read-timeout", standard.Read, "Maximum number of seconds between two reads from an endpoint. This limit also ends idle WebSockets.")
	sendTimeout    = timeout("proxy-send-timeout", standard.Send, "Maximum number of seconds between two writes to an endpoint.")
)

func timeout(setting string, seconds int, doc string) feature.Setting[time.Duration] {
	return feature.Setting[time.Duration]{
		Annotation: setting, Key: setting, Default: time.Duration(seconds) * time.Second,
		Parse: quantity.Seconds(1, maxSeconds), Risk: feature.Low, Doc: doc,
	}
}

// Feature is how requests and answers pass through.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Proxying: buffers, body size, timeouts, retries.",
		Settings: []feature.AnySetting{
			buffering, requestBuffering, bufferSize, buffers, bodySize,
			bodyBuffer, busyBuffers, tempFile, httpVersion, grpcBuffer,
			connectTimeout, readTimeout, sendTimeout,
			retry, retryTime, retryTries, retryNonIdempotent,
		},
		Route:      route,
		Predict:    prediction.ByPhase{prediction.RoutePhase: predict(false), prediction.GuardPhase: predict(true)},
		Lua:        lua,
		Directives: directives(),
		Common:     common(),
		Occasional: occasional(),
	}
}

// policy is what proxying.lua reads of a route.
type policy struct {
	// Body is the exact limit in bytes, 0 for none.
	Body int64 `json:"body,omitempty"`
	// AtStep is set where the profile's limit is the exact one.
	AtStep bool `json:"at_step,omitempty"`
	// Timeouts are left out where they are those of nginx.conf.
	Timeouts *timeouts `json:"timeouts,omitempty"`
	// Tries are left out where they are as many as usual.
	Tries *int `json:"tries,omitempty"`
}

// timeouts are in seconds.
type timeouts struct {
	Connect int `json:"connect"`
	Send    int `json:"send"`
	Read    int `json:"read"`
}

// standard are the timeouts that every profile has in nginx.conf; a route with
// others sets them for each request.
var standard = timeouts{
	Connect: int(model.ConnectTimeout / time.Second), Send: int(model.SendTimeout / time.Second), Read: int(model.ReadTimeout / time.Second),
}

func route(v feature.Values, out *feature.RouteOut) {
	limit := bodySize.Get(v)
	step := bodyStep(limit)
	writeProfile(v, &out.Route.Profile)
	noteBusy(v, out)
	out.Route.Profile = out.Route.Profile.With(maxBodySize.To(step))
	// The length of a streamed body is not known: NGINX stops it at the step.
	out.Route.Profile.Access = out.Route.Profile.Access || step != limit && requestBuffering.Get(v)

	p := policy{Body: limit, AtStep: limit > 0 && step == limit}
	t := timeouts{
		Connect: int(connectTimeout.Get(v) / time.Second),
		Send:    int(sendTimeout.Get(v) / time.Second),
		Read:    int(readTimeout.Get(v) / time.Second),
	}
	if t != standard {
		p.Timeouts = &t
	}
	if tries := retryTries.Get(v); tries != retryTries.Default {
		p.Tries = &tries
	}
	if p != (policy{}) {
		feature.Add(out.Route, name, p)
	}
}

// writeProfile writes all but the limit on bodies. NGINX refuses some
// combinations: what depends on the buffers is brought within their bounds.
func writeProfile(v feature.Values, p *model.Profile) {
	size, number := buffersOf(v, p.Protocol)
	busy := 2 * size
	if asked := busyBuffers.Get(v); asked > 0 {
		busy = max(size, powerOfTwo(asked))
	}
	file := tempFile.Get(v)
	if file > 0 {
		file = max(size, powerOfTwo(file))
	}
	*p = p.With(
		answerBuffering.When(buffering.Get(v)),
		bodyBuffering.When(requestBuffering.Get(v)),
		answerBufferSize.To(size),
		answerBuffers.To(number),
		busyBuffersSize.To(min(busy, size*number/2)),
		maxTempFileSize.To(file),
		bodyBufferSize.To(min(powerOfTwo(max(minBuffer, bodyBuffer.Get(v))), maxKept)),
		nextUpstream.To(int64(retryConditions(v))),
		nextUpstreamTimeout.To(int64(retryStep(retryTime.Get(v))/time.Second)),
		httpProtocol.When(httpVersion.Get(v)),
	)
}

// buffersOf are the size and the number of the buffers for responses.
func buffersOf(v feature.Values, protocol model.Protocol) (size, number int64) {
	size = max(minBuffer, powerOfTwo(bufferSize.Get(v)))
	if protocol == model.GRPC {
		size = bufferSize.Default
		if kb := grpcBuffer.Get(v); kb > 0 {
			size = powerOfTwo(int64(kb) * kib)
		}
	}
	return size, max(minBuffers, min(powerOfTwo(int64(buffers.Get(v))), maxKept/size))
}

// noteBusy reports a size that the other sizes don't allow: NGINX would not start with it.
func noteBusy(v feature.Values, out *feature.RouteOut) {
	size, number := buffersOf(v, out.Route.Profile.Protocol)
	asked := busyBuffers.Get(v)
	if used := min(max(asked, size), size*number/2); v.IsSet(busyBuffers) && asked > 0 && used != asked {
		out.Warn(busyBuffers, finding.InvalidValue, fmt.Sprintf("invalid value of %d bytes: must be from %dk, which is %s, to %dk, which is half of that times %s", asked, size/kib, bufferSize.Annotation, size*number/2/kib, buffers.Annotation),
			fmt.Sprintf("using %dk", used/kib))
	}
}

// powerOfTwo is the least power of two that is not below n, for n ≥ 1.
func powerOfTwo(n int64) int64 {
	return 1 << bits.Len64(uint64(n-1))
}

// bodyStep is the least of 1, 2, 5, 10, … 500 of k, m and g that is not below
// limit: the limits that tenants write most are steps themselves, and all
// others share 27 profiles. See docs/decisions/0004.
func bodyStep(limit int64) int64 {
	if limit == 0 {
		return 0
	}
	for _, unit := range []int64{kib, mib, gib} {
		for _, decade := range []int64{1, 10, 100} {
			for _, digit := range []int64{1, 2, 5} {
				if step := unit * decade * digit; step >= limit {
					return step
				}
			}
		}
	}
	return maxBody
}
