package proxying

import (
	"fmt"
	"strconv"

	"github.com/headgate/headgate/internal/feature"
)

// predict is proxying.lua's check of the length that a request announces.
func predict(q feature.SimulatedRequest) feature.Prediction {
	if p, _ := q.Policy.(policy); q.Jumps || p.AtStep {
		return feature.Prediction{}
	}
	return predictLength(q)
}

// predictJump is the check before a jump, or NGINX's own where its limit is the
// exact one: both come after guards.
func predictJump(q feature.SimulatedRequest) feature.Prediction {
	if p, _ := q.Policy.(policy); !q.Jumps && !p.AtStep {
		return feature.Prediction{}
	}
	return predictLength(q)
}

func predictLength(q feature.SimulatedRequest) feature.Prediction {
	p, _ := q.Policy.(policy)
	text, _ := q.Header("content_length")
	length, err := strconv.ParseInt(text, 10, 64)
	if err != nil || p.Body == 0 || length <= p.Body {
		return feature.Prediction{}
	}
	return feature.Prediction{Status: 413, Why: fmt.Sprintf("proxy-body-size allows %d bytes", p.Body)}
}
