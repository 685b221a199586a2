package snippet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/syntax/snippet"
)

// Of directives that come several times, a route can have so many.
const (
	maxFilters = 4
	maxLimits  = 3
	maxCookies = 2
)

// flagWords are the values of a directive that a profile may lack: 0 leaves it out.
var flagWords = []string{"", "on", "off"}

var (
	gzip             = flag("gzip")
	gzipVary         = flag("gzip_vary")
	gunzip           = flag("gunzip")
	gzipLevel        = plain("gzip_comp_level", directive.Count, nil, 1, 9)
	gzipMinLength    = plain("gzip_min_length", directive.Count, nil, 1, 1000)
	gzipHTTP         = plain("gzip_http_version", directive.Choice, []string{"", "1.0", "1.1"}, 1, 2)
	gzipOldExplorers = plain("gzip_disable", directive.Choice, []string{"", `"msie6"`}, 1)
	gzipProxied      = plain("gzip_proxied", directive.Set, []string{
		"off", "expired", "no-cache", "no-store", "private", "no_last_modified", "no_etag", "auth", "any",
	}, 1, 256)
	gzipTypes = plain("gzip_types", directive.Listed, mediaTypes)

	filterOnce         = flag("sub_filter_once")
	filterLastModified = flag("sub_filter_last_modified")
	filterTypes        = plain("sub_filter_types", directive.Listed, mediaTypes)

	chunked     = flag("chunked_transfer_encoding")
	bodyTimeout = plain("client_body_timeout", directive.Seconds, nil, timeSteps...)
	sendTimeout = plain("send_timeout", directive.Seconds, nil, timeSteps...)

	keepAlive      = proxied(flag("socket_keepalive"))
	forceRanges    = proxied(flag("force_ranges"), model.HTTP, model.FastCGI)
	ignoreAbort    = proxied(flag("ignore_client_abort"), model.HTTP, model.FastCGI)
	backendMethod  = proxied(plain("method", directive.Choice, []string{"", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}, 1, 3), model.HTTP)
	ignoredHeaders = proxied(plain("ignore_headers", directive.Set, ignorable, 1, 511), model.HTTP, model.FastCGI)
	cookieFlags    = instances(maxCookies, func(i int) directive.Directive {
		return cookieFlagsOf(fmt.Sprint("cookie_flags_", i), fmt.Sprint("$hg_cookie_", i))
	})
	everyCookie     = cookieFlagsOf("cookie_flags_0", "~")
	filters         = instances(maxFilters, filterOf)
	requestLimits   = instances(maxLimits, func(i int) directive.Directive { return limitOf("limit_req", i, directive.RequestLimit) })
	requestStatus   = plain("limit_req_status", directive.Count, nil, 400, 599)
	requestLevel    = plain("limit_req_log_level", directive.Choice, logLevels, 1, 2, 3, 4)
	requestDry      = flag("limit_req_dry_run")
	connectionLimit = instances(maxLimits, func(i int) directive.Directive { return limitOf("limit_conn", i, directive.ConnectionLimit) })
	connStatus      = plain("limit_conn_status", directive.Count, nil, 400, 599)
	connLevel       = plain("limit_conn_log_level", directive.Choice, logLevels, 1, 2, 3, 4)
	connDry         = flag("limit_conn_dry_run")
)

var (
	logLevels = []string{"", "info", "notice", "warn", "error"}
	// timeSteps are in seconds. Times are rounded up to them.
	timeSteps = []int64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 86400}
	// ignorable are headers of backends that NGINX acts on. The first one counts
	// nowhere: it could reach locations that are Headgate's own.
	ignorable = []string{
		"X-Accel-Redirect", "X-Accel-Expires", "X-Accel-Limit-Rate", "X-Accel-Buffering", "X-Accel-Charset", "Expires", "Cache-Control", "Set-Cookie", "Vary",
	}
	cookieWords = []string{"secure", "nosecure", "httponly", "nohttponly", "samesite", "nosamesite", "samesite=strict", "samesite=lax", "samesite=none"}
)

// profileDirectives are the settings of profiles that snippets alone have.
func profileDirectives() directive.List {
	return slices.Concat(directive.List{
		gzip, gzipVary, gunzip, gzipLevel, gzipMinLength, gzipHTTP, gzipOldExplorers, gzipProxied, gzipTypes,
		filterOnce, filterLastModified, filterTypes, chunked, bodyTimeout, sendTimeout,
		keepAlive, forceRanges, ignoreAbort, backendMethod, ignoredHeaders,
	}, cookieFlags, directive.List{everyCookie}, filters,
		requestLimits, directive.List{requestStatus, requestLevel, requestDry}, connectionLimit, directive.List{connStatus, connLevel, connDry})
}

// groupOf is the name of the directive in nginx.conf, without the protocol's prefix.
func groupOf(name string) string {
	if at := strings.LastIndexByte(name, '_'); at > 0 && len(name) == at+2 && name[at+1] >= '0' && name[at+1] <= '9' {
		return name[:at]
	}
	return name
}

func settingsResources() resource.Resources {
	var r resource.Resources
	add := func(kind resource.VariableKind, prefix string, many int) {
		for i := range many {
			r.Variables = append(r.Variables, resource.Variable{Name: resource.NewName(fmt.Sprint(prefix, i+1)), Kind: kind})
		}
	}
	add(resource.Content, "hg_sub_from_", maxFilters)
	add(resource.Content, "hg_sub_to_", maxFilters)
	add(resource.Line, "hg_cookie_", maxCookies)
	return r
}

func plain(name string, kind directive.Kind, words []string, samples ...int64) directive.Directive {
	return directive.Directive{Name: name, Plain: true, Yields: true, Kind: kind, Words: words, Omits: true, Order: directive.Same, Samples: samples}
}

func flag(name string) directive.Directive { return plain(name, directive.Choice, flagWords, 1, 2) }

func proxied(d directive.Directive, only ...model.Protocol) directive.Directive {
	d.Plain, d.Only = false, only
	return d
}

func instances(many int, of func(int) directive.Directive) directive.List {
	list := make(directive.List, many)
	for i := range list {
		list[i] = of(i + 1)
	}
	return list
}

func filterOf(i int) directive.Directive {
	d := plain(fmt.Sprint("sub_filter_", i), directive.Choice, []string{"", fmt.Sprintf("$hg_sub_from_%d $hg_sub_to_%d", i, i)}, 1)
	d.As = "sub_filter"
	return d
}

func limitOf(name string, i int, kind directive.Kind) directive.Directive {
	d := plain(fmt.Sprintf("%s_%d", name, i), kind, nil)
	d.As = name
	return d
}

func cookieFlagsOf(name, cookie string) directive.Directive {
	d := proxied(plain(name, directive.Set, cookieWords, 1, 4, 64), model.HTTP)
	d.As = "cookie_flags " + cookie
	return d
}

// profileUses are the directives that are followed in the profile, and those that do
// nothing.
func profileUses() map[string]use {
	all := map[string]use{}
	write := func(name string, value func(snippet.Setting) (model.ProfileValue, bool)) {
		all[name] = use{follow: func(f *follower, s snippet.Setting) {
			if v, ok := value(s); ok {
				f.set(v)
			}
		}}
	}
	for _, d := range []directive.Directive{gzip, gzipVary, gunzip, filterOnce, filterLastModified, chunked, requestDry, connDry} {
		write(d.Name, choice(d))
	}
	for _, d := range []directive.Directive{keepAlive, forceRanges, ignoreAbort} {
		write("proxy_"+d.Name, choice(d))
	}
	write("grpc_socket_keepalive", choice(keepAlive))
	for _, d := range []directive.Directive{gzipHTTP, requestLevel, connLevel} {
		write(d.Name, choice(d))
	}
	for _, d := range []directive.Directive{gzipLevel, gzipMinLength, requestStatus, connStatus} {
		write(d.Name, count(d))
	}
	for _, d := range []directive.Directive{bodyTimeout, sendTimeout} {
		write(d.Name, step(d))
	}
	write("gzip_proxied", set(gzipProxied))
	write("proxy_ignore_headers", set(ignoredHeaders))
	all["gzip_types"] = use{follow: listed(gzipTypes)}
	all["sub_filter_types"] = use{follow: listed(filterTypes)}
	all["gzip_disable"] = use{follow: followAgents}
	all["sub_filter"] = use{follow: followFilter}
	all["proxy_method"] = use{follow: followMethod}
	all["proxy_cookie_flags"] = use{follow: followCookie}
	all["limit_req"] = use{follow: followRequestLimit}
	all["limit_conn"] = use{follow: followConnectionLimit}
	addServerUses(all)
	return all
}

// choice is the argument as one of the directive's words.
func choice(d directive.Directive) func(snippet.Setting) (model.ProfileValue, bool) {
	return func(s snippet.Setting) (model.ProfileValue, bool) {
		i := slices.Index(d.Words, s.Arguments[0])
		return d.To(int64(i)), i > 0
	}
}

func count(d directive.Directive) func(snippet.Setting) (model.ProfileValue, bool) {
	return func(s snippet.Setting) (model.ProfileValue, bool) {
		n, err := strconv.ParseInt(s.Arguments[0], 10, 64)
		// The value 0 leaves the directive out: the least length is 1 instead.
		return d.To(max(1, n)), err == nil
	}
}

// step is a time, rounded up.
func step(d directive.Directive) func(snippet.Setting) (model.ProfileValue, bool) {
	return func(s snippet.Setting) (model.ProfileValue, bool) {
		n, err := seconds(s.Arguments[0])
		for _, most := range timeSteps {
			if int64(n) <= most {
				return d.To(most), err == nil
			}
		}
		return d.To(timeSteps[len(timeSteps)-1]), err == nil
	}
}

// set is words of the directive. NGINX always has the first one of those that are ignored.
func set(d directive.Directive) func(snippet.Setting) (model.ProfileValue, bool) {
	return func(s snippet.Setting) (model.ProfileValue, bool) {
		var bits int64
		if d.Name == ignoredHeaders.Name {
			bits = 1
		}
		for _, word := range s.Arguments {
			if i := slices.Index(d.Words, word); i >= 0 {
				bits |= 1 << i
			}
		}
		return d.To(bits), bits != 0
	}
}

// listed takes the media types that are known.
func listed(d directive.Directive) func(*follower, snippet.Setting) {
	return func(f *follower, s snippet.Setting) {
		var known []string
		for _, word := range s.Arguments {
			word = strings.ToLower(word)
			switch {
			case slices.Contains(d.Words, word):
				known = append(known, word)
			case word != "text/html":
				f.warn(s, fmt.Sprintf("the media type %q is not supported: the key gzip-types has any", finding.Shorten(word)))
			}
		}
		if len(known) > 0 {
			f.set(d.Listing(known))
		}
	}
}

func followAgents(f *follower, s snippet.Setting) {
	if slices.Equal(s.Arguments, []string{"msie6"}) {
		f.set(gzipOldExplorers.To(1))
		return
	}
	f.warn(s, "only msie6 is supported: the key gzip-disable takes expressions")
}

func followFilter(f *follower, s snippet.Setting) {
	i := f.seen[s.Name]
	if i > maxFilters {
		f.warn(s, fmt.Sprintf("at most %d are supported", maxFilters))
		return
	}
	f.set(filters[i-1].To(1))
	f.variables = append(f.variables,
		variable{"sub_filter", fmt.Sprint("hg_sub_from_", i), s.Values[0]}, variable{"sub_filter", fmt.Sprint("hg_sub_to_", i), s.Values[1]})
}

func followMethod(f *follower, s snippet.Setting) {
	method := strings.ToUpper(s.Arguments[0])
	switch i := slices.Index(backendMethod.Words, method); {
	case i > 0:
		f.set(backendMethod.To(int64(i)))
	case s.Arguments[0] != "$request_method":
		f.warn(s, "the method is not supported: it must be one of "+strings.Join(backendMethod.Words[1:], ", "))
	}
}

func followCookie(f *follower, s snippet.Setting) {
	var bits int64
	for _, word := range s.Arguments[1:] {
		i := slices.Index(cookieWords, strings.ToLower(word))
		if i < 0 {
			f.warn(s, fmt.Sprintf("the flag %q is not supported", finding.Shorten(word)))
			return
		}
		bits |= 1 << i
	}
	i := f.seen[s.Name]
	switch cookie := s.Arguments[0]; {
	case cookie == "off":
	case cookie == "~":
		f.set(everyCookie.To(bits))
	case strings.HasPrefix(cookie, "~"):
		f.warn(s, "expressions are not supported")
	case i > maxCookies:
		f.warn(s, fmt.Sprintf("at most %d are supported", maxCookies))
	default:
		f.set(cookieFlags[i-1].To(bits))
		f.variables = append(f.variables, variable{"cookie_flags", fmt.Sprint("hg_cookie_", i), s.Values[0]})
	}
}
