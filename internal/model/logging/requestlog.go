// Package logging has what the logs of NGINX are to have: formats, targets and severities.
//
// It must not know which settings say so.
package logging

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// A RequestLog is the access log of requests, as nginx.conf has it.
type RequestLog struct {
	// Off writes none.
	Off    bool
	Format Format
	Escape Escape
	// Target is where lines go, and Options how NGINX writes them there.
	Target  Target
	Options Options
	// Skipped are requests without a line.
	Skipped SkippedURLs
}

// Empty reports whether it is as without keys.
func (l RequestLog) Empty() bool {
	return !l.Off && l.Format == (Format{}) && l.Escape == EscapeDefault && l.Target.String() == "" && l.Options == (Options{}) && l.Skipped.text == ""
}

// DefaultFormat is ingress-nginx's.
func DefaultFormat() Format { return Format{defaultLogFormat} }

const defaultLogFormat = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" ` +
	`$request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length ` +
	`$upstream_response_time $upstream_status $req_id`

// Escape says what becomes of bytes in values that could end them.
type Escape int

// The ways to escape, with NGINX's names.
const (
	EscapeDefault Escape = iota
	EscapeJSON
	EscapeNone
)

func (e Escape) String() string { return [...]string{"default", "json", "none"}[e] }

// A Format is the form of a line: text and variables. The zero value stands for
// DefaultFormat.
type Format struct{ text string }

// A Part is a text, or the variable of that name, in lower case.
type Part struct{ Text, Variable string }

const maxLogFormat = 16 << 10

// NewFormat reads a form as NGINX does in single quotes: variables are $name or ${name}, and
// a backslash stands before quotes, backslashes, and n, r and t for control characters. It does
// not say whether NGINX has the variables. Those of Headgate's own, which may have keys, are not
// allowed.
func NewFormat(text string) (Format, error) {
	invalid := fmt.Errorf("must be text of at most %d bytes without NUL, with the name of a variable of at most %d bytes behind each $", maxLogFormat, longestVariable)
	if len(text) > maxLogFormat || strings.Contains(text, "\x00") {
		return Format{}, invalid
	}
	f := Format{text}
	for _, part := range f.Parts() {
		switch {
		case part.Text == "" && part.Variable == "":
			return Format{}, invalid
		case strings.HasPrefix(part.Variable, "hg_"):
			return Format{}, fmt.Errorf("must not have $%.60s: variables whose names begin with hg_ are Headgate's own", part.Variable)
		}
	}
	return f, nil
}

// String is the form as it is written.
func (f Format) String() string { return f.text }

// escaped are what NGINX reads behind a backslash in quotes.
var escaped = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

// Parts are those of the line, in their order. A variable without a name is a mistake.
func (f Format) Parts() []Part {
	var parts []Part
	for text := escaped.Replace(cmp.Or(f.text, defaultLogFormat)); text != ""; {
		plain, rest, found := strings.Cut(text, "$")
		if plain != "" {
			parts = append(parts, Part{Text: plain})
		}
		if !found {
			break
		}
		var name string
		name, text = nginxsyntax.CutVariable(rest)
		if strings.Trim(name, variableBytes) != "" || len(name) > longestVariable {
			name = ""
		}
		parts = append(parts, Part{Variable: nginxsyntax.LowerASCII(name)})
	}
	return parts
}

// longestVariable is how long the name of a variable may be. NGINX's own are shorter.
const longestVariable = 256

const variableBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// Has reports whether a line has a variable.
func (f Format) Has(variable string) bool {
	return slices.ContainsFunc(f.Parts(), func(p Part) bool { return p.Variable == variable })
}

// longestParameter is how long a parameter gets before the form goes on in another one: NGINX takes
// 4096 bytes, and rejects its whole configuration for more.
const longestParameter = 2048

// Directive is the form as log_format takes it, which joins its parameters. write says what stands for a
// variable: another one, or text; nil leaves all as they are.
func (f Format) Directive(write func(variable string) Part) string {
	var b strings.Builder
	begin := 0
	add := func(text string) {
		if b.Len()-begin+len(text) > longestParameter {
			b.WriteString("' '")
			begin = b.Len()
		}
		b.WriteString(text)
	}
	for _, part := range f.Parts() {
		if part.Variable != "" && write != nil {
			part = write(part.Variable)
		}
		if part.Variable != "" {
			add("${" + part.Variable + "}")
			continue
		}
		for i := range len(part.Text) {
			add(inQuotes.Replace(part.Text[i : i+1]))
		}
	}
	return "'" + b.String() + "'"
}

var inQuotes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// Options are parameters of access_log.
type Options struct{ text string }

var logOption = regexp.MustCompile(`^(?:buffer=([1-9][0-9]{0,8})([kKmM]?)|gzip(?:=[1-9])?|flush=([1-9][0-9]{0,8})(ms|[smhd]?))$`)

// Each worker has a buffer, which NGINX allocates when it reads its configuration. A line that waits for longer is as
// good as lost.
const (
	maxLogBuffer = 16 << 20
	maxLogFlush  = 24 * time.Hour
)

// NewOptions checks parameters of access_log.
func NewOptions(text string) (Options, error) {
	words := strings.Fields(text)
	for i, word := range words {
		name, _, _ := strings.Cut(word, "=")
		found := logOption.FindStringSubmatch(word)
		if found == nil || slices.ContainsFunc(words[:i], func(w string) bool { return strings.HasPrefix(w, name) }) {
			return Options{}, errors.New("must be buffer=SIZE, gzip or gzip=LEVEL, and flush=TIME, each at most once, separated by spaces")
		}
		if tooMuch(found) {
			return Options{}, fmt.Errorf("must have a buffer of at most %dm, and flush it after at most %dh", maxLogBuffer>>20, maxLogFlush/time.Hour)
		}
	}
	return Options{strings.Join(words, " ")}, nil
}

// tooMuch reports whether a logOption is out of bounds. Its numbers are empty, and count as 0, where it has none.
func tooMuch(option []string) bool {
	size, _ := strconv.Atoi(option[1])
	flush, _ := strconv.Atoi(option[3])
	sizes := map[string]int{"": 1, "k": 1 << 10, "m": 1 << 20}
	times := map[string]time.Duration{"ms": time.Millisecond, "": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	// Without an overflow.
	return size > maxLogBuffer/sizes[nginxsyntax.LowerASCII(option[2])] || time.Duration(flush) > maxLogFlush/times[option[4]]
}

func (o Options) String() string { return o.text }

// Compressed reports whether NGINX writes compressed blocks.
func (o Options) Compressed() bool { return strings.Contains(o.text, "gzip") }

// SkippedURLs are URLs of requests, with query, as clients wrote them.
type SkippedURLs struct {
	text  string
	whole []string
	// patterns are regular expressions that begin with "~", or with "~*" to ignore case.
	patterns []string
}

// NewSkippedURLs takes URLs and expressions that were compiled.
func NewSkippedURLs(text string, whole, patterns []string) SkippedURLs {
	return SkippedURLs{text, whole, patterns}
}

func (s SkippedURLs) String() string { return s.text }

// MaxSkippedURL is how long one of them may be. In nginx.conf a byte may be two, and NGINX takes 4096 of a key.
const MaxSkippedURL = 1000

// Bucket is the size of buckets in the table of a map that each key fits into, 0 if there is no text among them. In a
// bucket, a key has an address before it and its length, and NGINX wants room for one more address.
func (s SkippedURLs) Bucket() int {
	if len(s.whole) == 0 {
		return 0
	}
	return 8 + (2+MaxSkippedURL+7)/8*8 + 8
}

// Keys are the keys of a map of NGINX, in quotes. It finds texts without regard to case.
func (s SkippedURLs) Keys() []string {
	var keys []string
	for _, text := range s.whole {
		keys = append(keys, `\`+nginxsyntax.LowerASCII(text))
	}
	keys = append(keys, s.patterns...)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for i, key := range keys {
		keys[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
	}
	return keys
}

// Variables are the variables of lines that NGINX does not have, and Headgate has, sorted.
func Variables() []string {
	return []string{
		"balancer_ewma_score", "best_http_host", "connection_upgrade", "full_x_forwarded_for", "ingress_name", "location_path", "namespace",
		"opentelemetry_context_traceparent", "opentelemetry_span_id", "opentelemetry_trace_id",
		"pass_access_scheme", "pass_port", "pass_server_port", "proxy_alternative_upstream_name", "proxy_upstream_name", "req_id",
		"service_name", "service_port", "the_real_ip",
	}
}
