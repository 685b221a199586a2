package proxying

import (
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// The directives of profiles. NGINX rejects some combinations of them; writeProfile
// makes none of these.
var (
	maxBodySize = directive.Directive{
		Name: "client_max_body_size", Plain: true, Kind: directive.Size,
		Order: directive.AtMost, Unlimited: true, Strictest: directive.Number(kib), Samples: bodySteps(),
	}
	answerBuffering = directive.Directive{
		Name: "buffering", Only: []model.Protocol{model.HTTP, model.FastCGI}, Order: directive.Any, Samples: []int64{0, 1},
	}
	bodyBuffering = directive.Directive{
		Name: "request_buffering", Only: []model.Protocol{model.HTTP, model.FastCGI}, Order: directive.Any,
		// The access phase reads bodies.
		Strictest: directive.Number(1), Samples: []int64{0, 1},
	}
	answerBufferSize = directive.Directive{Name: "buffer_size", Kind: directive.Size, Order: directive.Any, Loses: true}
	answerBuffers    = directive.Directive{
		Name: "buffers", Only: []model.Protocol{model.HTTP, model.FastCGI}, Kind: directive.Count, Times: "buffer_size", Order: directive.Any,
	}
	busyBuffersSize = directive.Directive{
		Name: "busy_buffers_size", Only: []model.Protocol{model.HTTP, model.FastCGI}, Kind: directive.Memory, Order: directive.Any,
	}
	maxTempFileSize = directive.Directive{
		Name: "max_temp_file_size", Only: []model.Protocol{model.HTTP, model.FastCGI}, Kind: directive.Memory, Order: directive.Any,
	}
	bodyBufferSize = directive.Directive{
		Name: "client_body_buffer_size", Plain: true, Kind: directive.Memory, Order: directive.Any, Samples: powers(kib, maxKept),
	}
	nextUpstream = directive.Directive{
		Name: "next_upstream", Kind: directive.Set, Words: strings.Fields(model.AllRetryConditions.String()), Order: directive.Within,
		Lacks:     map[model.Protocol]int64{model.FastCGI: int64(model.Status502 | model.Status504)},
		Strictest: directive.Number(0), Samples: sets(),
	}
	nextUpstreamTimeout = directive.Directive{
		Name: "next_upstream_timeout", Kind: directive.Seconds, Order: directive.Any, Unlimited: true, Samples: append([]int64{0}, retrySteps...),
	}
	httpProtocol = directive.Directive{
		Name: "http_version", Only: []model.Protocol{model.HTTP}, Kind: directive.Choice, Words: []string{"1.1", "1.0"}, Order: directive.Any,
		Samples: []int64{0, 1},
	}
)

func directives() directive.List {
	return directive.List{
		maxBodySize, answerBuffering, bodyBuffering, answerBufferSize, answerBuffers, busyBuffersSize, maxTempFileSize, bodyBufferSize,
		nextUpstream, nextUpstreamTimeout, httpProtocol,
	}
}

func bodySteps() []int64 {
	steps := []int64{0}
	for limit := int64(1); limit < maxBody; limit = bodyStep(limit) + 1 {
		steps = append(steps, bodyStep(limit))
	}
	return steps
}

func powers(from, to int64) []int64 {
	var list []int64
	for n := from; n <= to; n *= 2 {
		list = append(list, n)
	}
	return list
}

// sets are all sets of conditions but one that has no effect.
func sets() []int64 {
	var list []int64
	for set := range model.AllRetryConditions + 1 {
		if set != model.NonIdempotent {
			list = append(list, int64(set))
		}
	}
	return list
}
