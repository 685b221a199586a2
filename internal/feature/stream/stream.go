// Package stream has the settings of TCP and UDP services. They apply to all of them,
// and a change costs no reload: NGINX takes no part in them.
package stream

import (
	"errors"
	"time"

	"github.com/headgate/headgate/internal/model/logging"
	"github.com/headgate/headgate/internal/syntax/quantity"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// maxResponses bounds a number that NGINX does not bound: a larger one is a typo.
const maxResponses = 1 << 20

var (
	idle = feature.Setting[time.Duration]{
		Key: "proxy-stream-timeout", Default: 600 * time.Second, Parse: positive, Scope: feature.ScopeProcess,
		Doc: "Maximum time that a connection of a TCP service or a session of a UDP service can be idle.",
	}
	next = feature.Setting[bool]{
		Key: "proxy-stream-next-upstream", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Tries another endpoint of a TCP service if one can't be connected to.",
	}
	nextTimeout = feature.Setting[time.Duration]{
		Key: "proxy-stream-next-upstream-timeout", Default: 600 * time.Second, Parse: quantity.Duration, Scope: feature.ScopeProcess,
		Doc: "Maximum time in which endpoints of a TCP service are tried. 0 is without limit.",
	}
	tries = feature.Setting[int]{
		Key: "proxy-stream-next-upstream-tries", Default: model.Tries, Parse: feature.Int(0, model.MaxTries), Scope: feature.ScopeProcess,
		Doc: "Maximum number of endpoints of a TCP service to try. 0 tries all of them.",
	}
	responses = feature.Setting[int]{
		Key: "proxy-stream-responses", Default: 1, Parse: feature.Int(0, maxResponses), Scope: feature.ScopeProcess,
		Doc: "Number of datagrams of a UDP service that answer one datagram of a client. When all have come, the session ends. 0 expects none.",
	}
	logFormat = feature.Setting[logging.StreamFormat]{
		Key: "log-format-stream", Default: model.DefaultStreamSettings().LogFormat, Parse: logging.NewStreamFormat, Scope: feature.ScopeProcess,
		Doc: "Format of the access log of TCP and UDP services.",
	}
	logTarget = feature.Setting[logging.Target]{
		Key: "stream-access-log-path", Parse: logging.AccessLogTarget, Scope: feature.ScopeProcess,
		Doc: "File or syslog server that the access log of TCP and UDP services is written to, instead of that of `access-log-path`. " +
			"With `/var/log/nginx/access.log`, it is the standard output of the container.",
	}
	noLog = feature.Setting[bool]{
		Key: "disable-stream-access-log", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Disables the access log of TCP and UDP services. The key `disable-access-log` disables it too.",
	}
)

// Feature is the settings of TCP and UDP services.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "tcp_udp",
		Doc:      "Settings of TCP and UDP services.",
		Settings: []feature.AnySetting{idle, next, nextTimeout, tries, responses, logFormat, logTarget, noLog},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.Stream = model.StreamSettings{
				Idle: idle.Get(v), NextEndpoint: next.Get(v), NextTimeout: nextTimeout.Get(v), Tries: tries.Get(v), Responses: responses.Get(v),
				AccessLog: !noLog.Get(v), LogFormat: logFormat.Get(v),
				// NGINX does not write this log, but it can say whether it could.
				LogTarget: out.LogTarget(logTarget, "access_log", "combined"),
			}
		},
	}
}

func positive(text string) (time.Duration, error) {
	d, err := quantity.Duration(text)
	if err == nil && d == 0 {
		return 0, errors.New("must be greater than 0")
	}
	return d, err
}
