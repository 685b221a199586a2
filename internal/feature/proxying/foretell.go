package proxying

import (
	"fmt"
	"strconv"

	"github.com/headgate/headgate/internal/feature"
)

// foretell is proxying.lua's check of the length that a request announces.
func foretell(q feature.Question) feature.Foretold {
	if p, _ := q.Policy.(policy); q.Jumps || p.AtStep {
		return feature.Foretold{}
	}
	return foretellLength(q)
}

// foretellJump is the check before a jump, or NGINX's own where its limit is the
// exact one: both come after guards.
func foretellJump(q feature.Question) feature.Foretold {
	if p, _ := q.Policy.(policy); !q.Jumps && !p.AtStep {
		return feature.Foretold{}
	}
	return foretellLength(q)
}

func foretellLength(q feature.Question) feature.Foretold {
	p, _ := q.Policy.(policy)
	text, _ := q.Header("content_length")
	length, err := strconv.ParseInt(text, 10, 64)
	if err != nil || p.Body == 0 || length <= p.Body {
		return feature.Foretold{}
	}
	return feature.Foretold{Status: 413, Why: fmt.Sprintf("proxy-body-size allows %d bytes", p.Body)}
}
