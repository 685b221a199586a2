// Package compression has responses compressed for clients that accept it, by gzip and brotli.
package compression

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// maxLength bounds the minimum length. A larger one would compress nothing.
const maxLength = 1 << 30

// usualTypes are those of ingress-nginx for gzip. It has one more for brotli.
const usualTypes = "application/atom+xml application/javascript application/x-javascript application/json application/rss+xml " +
	"application/vnd.ms-fontobject application/x-font-ttf application/x-web-app-manifest+json application/xhtml+xml application/xml " +
	"font/opentype image/svg+xml image/x-icon text/css text/javascript text/plain text/x-component"

var (
	useGzip = feature.Setting[bool]{
		Key: "use-gzip", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Compresses responses by gzip for clients that accept it. See [compression.md](compression.md).",
	}
	gzipLevel = feature.Setting[int]{
		Key: "gzip-level", Default: 1, Parse: feature.Int(1, 9), Scope: feature.ScopeProcess,
		Doc: "Level of gzip: a higher one makes responses smaller, and takes more processor time.",
	}
	gzipMinLength = feature.Setting[int]{
		Key: "gzip-min-length", Default: 256, Parse: feature.Int(0, maxLength), Scope: feature.ScopeProcess,
		Doc: "Responses whose Content-Length is less than this number of bytes are not compressed by gzip.",
	}
	gzipTypes = feature.Setting[model.MIMETypes]{
		Key: "gzip-types", Default: types(usualTypes), Parse: model.NewMIMETypes, Scope: feature.ScopeProcess,
		Doc: "MIME types of responses that gzip compresses, separated by spaces, besides text/html. `*` stands for all.",
	}
	gzipDisable = feature.Setting[model.UserAgents]{
		Key: "gzip-disable", Parse: feature.Optional(ParseUserAgents), Scope: feature.ScopeProcess,
		Doc: "Clients that get no gzip: a regular expression, which is compared with the header User-Agent without regard to case. `msie6` stands for Internet Explorer 4 to 6.",
	}
	enableBrotli = feature.Setting[bool]{
		Key: "enable-brotli", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Compresses responses by brotli for clients that accept it. Clients that accept gzip as well get brotli. See [compression.md](compression.md).",
	}
	brotliLevel = feature.Setting[int]{
		Key: "brotli-level", Default: 4, Parse: feature.Int(0, 11), Scope: feature.ScopeProcess,
		Doc: "Level of brotli: a higher one makes responses smaller, and takes more processor time.",
	}
	brotliMinLength = feature.Setting[int]{
		Key: "brotli-min-length", Default: 20, Parse: feature.Int(0, maxLength), Scope: feature.ScopeProcess,
		Doc: "Responses whose Content-Length is less than this number of bytes are not compressed by brotli.",
	}
	brotliTypes = feature.Setting[model.MIMETypes]{
		Key: "brotli-types", Default: types("application/xml+rss " + usualTypes), Parse: model.NewMIMETypes, Scope: feature.ScopeProcess,
		Doc: "MIME types of responses that brotli compresses, separated by spaces, besides text/html. `*` stands for all.",
	}
)

// Feature is the compression of responses.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "compression",
		Doc:      "Compresses responses.",
		Settings: []feature.AnySetting{useGzip, gzipLevel, gzipMinLength, gzipTypes, gzipDisable, enableBrotli, brotliLevel, brotliMinLength, brotliTypes},
		Process:  process,
	}
}

func process(v feature.Values, out *feature.ProcessOut) {
	c := &out.Process.Compression
	if useGzip.Get(v) {
		c.Gzip = model.Encoder{On: true, Level: gzipLevel.Get(v), MinLength: gzipMinLength.Get(v), Types: gzipTypes.Get(v)}
		c.GzipDisable = gzipDisable.Get(v)
	}
	if !enableBrotli.Get(v) {
		return
	}
	if !v.Has(feature.Brotli) {
		out.Reject(enableBrotli, finding.MissingCapability, "this NGINX does not have the module for brotli (on Debian and Ubuntu the package libnginx-mod-http-brotli-filter)")
		return
	}
	c.Brotli = model.Encoder{On: true, Level: brotliLevel.Get(v), MinLength: brotliMinLength.Get(v), Types: brotliTypes.Get(v)}
}

func types(text string) model.MIMETypes {
	t, err := model.NewMIMETypes(text)
	if err != nil {
		panic(err)
	}
	return t
}

const maxUserAgents = 1000

// oldExplorers is a word of NGINX's for clients, instead of an expression.
const oldExplorers = "msie6"

// ParseUserAgents compiles an expression, which NGINX must accept: it rejects all of its
// configuration otherwise. A match that takes too long counts as one: the client gets no gzip.
func ParseUserAgents(text string) (model.UserAgents, error) {
	if text == oldExplorers {
		return model.NewUserAgents(text, text)
	}
	if len(text) > maxUserAgents || strings.ContainsFunc(text, unicode.IsControl) {
		return model.UserAgents{}, fmt.Errorf("must be a regular expression of at most %d bytes, without control characters", maxUserAgents)
	}
	compiled, err := pcre.Compile(text, pcre.Options{Caseless: true})
	if err != nil {
		return model.UserAgents{}, fmt.Errorf("%.60q: %w", text, err)
	}
	return model.NewUserAgents(text, fmt.Sprintf("(*LIMIT_MATCH=%d)%s", pcre.MatchLimit, compiled.Text()))
}
