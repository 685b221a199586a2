package accesslog

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/syntax/pcre"
)

// NGINX finds a URL in a table, but compares each request with all expressions.
const (
	maxURLs     = 1000
	maxPatterns = 50
)

// matchLimit bounds the steps of a match: beyond it, the request is logged.
var matchLimit = fmt.Sprintf("(*LIMIT_MATCH=%d)", pcre.MatchLimit)

// namedGroup is the beginning of a group that would set a variable of NGINX.
var namedGroup = regexp.MustCompile(`\(\?(?:P?<[A-Za-z_]|')`)

func parseURLs(text string) (logging.SkippedURLs, error) {
	var whole, patterns []string
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
			// As in ingress-nginx, a comma too many does no harm.
		case len(entry) > logging.MaxSkippedURL || entry[0] != '/' && entry[0] != '~' || strings.ContainsFunc(entry, isControl):
			return logging.SkippedURLs{}, fmt.Errorf("must be URLs that begin with a slash, or regular expressions behind a ~, of at most %d bytes, separated by commas", logging.MaxSkippedURL)
		case entry[0] == '/':
			whole = append(whole, entry)
		default:
			pattern, err := readPattern(entry)
			if err != nil {
				return logging.SkippedURLs{}, err
			}
			patterns = append(patterns, pattern)
		}
	}
	if len(whole) > maxURLs || len(patterns) > maxPatterns {
		return logging.SkippedURLs{}, fmt.Errorf("must be at most %d URLs and %d regular expressions", maxURLs, maxPatterns)
	}
	return logging.NewSkippedURLs(text, whole, patterns), nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// readPattern reads an expression and adds the limit of a match.
func readPattern(entry string) (string, error) {
	mark := "~"
	expression, caseless := strings.CutPrefix(entry[1:], "*")
	if caseless {
		mark = "~*"
	}
	if namedGroup.MatchString(expression) {
		return "", fmt.Errorf("%.60q: must have no named groups", expression)
	}
	compiled, err := pcre.Compile(expression, pcre.Options{Caseless: caseless})
	if err != nil {
		return "", fmt.Errorf("%.60q: %w", expression, err)
	}
	return mark + matchLimit + compiled.Text(), nil
}
