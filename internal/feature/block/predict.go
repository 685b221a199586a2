package block

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// predict decides as block.lua does.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Global.(policy)
	var depends string
	if p.networks != nil && !q.From.IsValid() {
		depends = "this depends on the client's address (" + cidrs.Key + ")"
	} else if p.networks != nil && p.networks.Has(q.From) {
		return refused(q.From.String(), cidrs.Key, finding.ShortenList(strings.Split(p.networks.String(), ",")))
	}
	userAgent, _ := q.Header("user_agent")
	if entry, is := p.UserAgents.matches(userAgent); is {
		return refused(fmt.Sprintf("the User-Agent %q", finding.Shorten(userAgent)), userAgents.Key, entry)
	}
	referer, _ := q.Header("referer")
	if entry, is := p.Referers.matches(referer); is {
		return refused(fmt.Sprintf("the Referer %q", finding.Shorten(referer)), referers.Key, entry)
	}
	return prediction.Answer{Why: depends}
}

func refused(what, key, by string) prediction.Answer {
	return prediction.Answer{Status: 403, Why: fmt.Sprintf("%s is in %s: %s", what, key, by)}
}

// matches returns the entry of a list that has a value.
func (l *blocklist) matches(value string) (entry string, is bool) {
	if l == nil {
		return "", false
	}
	if l.Whole[nginxsyntax.LowerASCII(value)] {
		return value, true
	}
	for _, p := range l.Patterns {
		compiled, err := pcre.Load(p.Pattern, pcre.Options{Caseless: p.Caseless})
		found := false
		if err == nil {
			found, err = compiled.Match(value)
		}
		if found || err != nil {
			return "~" + map[bool]string{true: "*"}[p.Caseless] + p.Pattern, true
		}
	}
	return "", false
}
