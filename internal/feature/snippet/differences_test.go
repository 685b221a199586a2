package snippet_test

import "regexp"

// makes is what has Headgate itself, or NGINX, answer instead of a backend.
const makes = `(allow and deny|if|return|rewrite|set|satisfy|of the administrator|location in location|sizes and times)`

// differences are pairs that Headgate follows otherwise than NGINX, each for a reason that
// docs/snippets.md has.
var differences = []*regexp.Regexp{
	// What Headgate answers has not been in a location of nginx.conf, which compresses and replaces.
	regexp.MustCompile(`/` + makes + `\+(gzip|sub_filter)/[01]$`),
	regexp.MustCompile(`/(gzip|sub_filter)\+` + makes + `/[01]$`),
	// The server clears Server behind what Lua sets before there is a location.
	regexp.MustCompile(`/` + makes + `\+more_set_headers/0$`),
	regexp.MustCompile(`/more_set_headers\+` + makes + `/1$`),
	// limit_req stands behind all guards: it counts no request that these refuse.
	regexp.MustCompile(`/(allow and deny\+limits/0|limits\+(allow and deny|satisfy)/1)$`),
	// Steps run before the length of a body is looked at.
	regexp.MustCompile(`^pair/sizes and times\+(if|location in location|return|set)/0$`),
	// An error_page of the server does not see which locations intercept errors.
	regexp.MustCompile(`^both/error_page\+proxying/0$`),
}

// differs reports whether a pair is one of these.
func differs(c snippetCase) bool {
	for _, expression := range differences {
		if c.pair && expression.MatchString(c.name) {
			return true
		}
	}
	return false
}
