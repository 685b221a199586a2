package rewrite

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// predict is rewrite.lua's function rewrite in Go.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	groups, err := find(p.Pattern, q.Path)
	if err != nil {
		return prediction.Answer{Status: 500, Why: "the route's path takes too long to compare: " + err.Error()}
	}
	if groups == nil {
		return prediction.Answer{}
	}
	target := prediction.EscapePath(prediction.Expand(p.Target, q, func(name string) (string, bool) {
		n, err := strconv.Atoi(name)
		if err != nil {
			return "", false
		}
		if n >= len(groups) || groups[n][0] < 0 {
			return "", true
		}
		return q.Path[groups[n][0]:groups[n][1]], true
	}))
	if !p.Redirect {
		why := fmt.Sprintf("the backend is asked for the path %s (rewrite-target)", finding.Shorten(cmp.Or(target, "/")))
		if strings.Contains(strings.ToUpper(q.URI), "%2F") {
			why += "; %2F in the path of the request becomes a slash"
		}
		return prediction.Answer{Why: why}
	}
	if query := q.Query(); query != "" {
		target += "?" + query
	}
	return prediction.Answer{Status: 302, Location: target, Why: "rewrite-target is a URL"}
}

func find(pattern, path string) ([][2]int, error) {
	compiled, err := pcre.Load(pattern, pcre.Options{Caseless: true})
	if err != nil {
		return nil, err
	}
	return compiled.Find(path)
}
