package proxying

import (
	"fmt"
	"strconv"

	"github.com/headgate/headgate/internal/model/prediction"
)

// predict returns proxying.lua's check of the length that a request announces. AtJump is
// the one before a jump, or NGINX's own where its limit is the exact one: both come after
// guards.
func predict(atJump bool) func(prediction.Request) prediction.Answer {
	return func(q prediction.Request) prediction.Answer {
		p, _ := q.Policy.(policy)
		text, _ := q.Header("content_length")
		length, err := strconv.ParseInt(text, 10, 64)
		if (q.Jumps || p.AtStep) != atJump || err != nil || p.Body == 0 || length <= p.Body {
			return prediction.Answer{}
		}
		return prediction.Answer{Status: 413, Why: fmt.Sprintf("proxy-body-size allows %d bytes", p.Body)}
	}
}
