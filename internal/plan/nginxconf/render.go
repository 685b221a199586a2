// Package nginxconf writes nginx.conf and the static files that it names: from the model's settings, the
// profiles that have a location, and what the machine and the flags say.
package nginxconf

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

//go:embed nginx.conf.tmpl
var nginxTemplate string

// File is the name of the static file that names all others.
const File = "nginx.conf"

// An Environment is what the machine and the flags say about the NGINX process.
type Environment struct {
	// RunDir is the directory of everything that the process reads or writes.
	RunDir Path
	// User and Group are the workers', empty to keep the controller's.
	User, Group Word
	// Modules are files of dynamic modules, in the order to load them.
	Modules []Path
	// HTTP2Directive is set where HTTP/2 is switched on by "http2 on" (NGINX
	// 1.25.1 and later), and not by a parameter of listen.
	HTTP2Directive bool
	IPv6           bool
	HTTPPort       Port
	HTTPSPort      Port
	// DefaultServerPort answers 404, and StatusPort, on the loopback address, has the status
	// of NGINX. 0 opens none.
	DefaultServerPort, StatusPort Port
	// Passthrough has NGINX take TLS connections from the controller, which listens on the
	// port for https too, at a unix socket.
	Passthrough bool
	// HealthPath is the path that answers 200 for names that no host has.
	HealthPath Path
	// AccessLog is the file that the access log is written to.
	AccessLog Path
	// PipedLog is set where that is a pipe that the controller reads.
	PipedLog bool
	// Resources and Directives are what the features declare.
	Resources  resource.Resources
	Directives directive.List
	// Workers is the number of workers where the ConfigMap says auto.
	Workers int
	// OpenFiles is the number of files that a worker may open, 0 to leave it.
	OpenFiles int
	// Backlog is the length of the queue of connections that wait.
	Backlog int
	// Debug is set if NGINX logs at its level debug unless the ConfigMap says otherwise.
	Debug bool
	// Traffic says how requests are counted; nil if they are not.
	Traffic *Traffic
	// Authorities is the file of the system's certificate authorities, empty if
	// there is none.
	Authorities Path
}

// Dictionaries are the shared dictionaries that hold the units. They never
// change size, since that would empty them: larger ones come under the next
// number, filled from those before.
type Dictionaries struct {
	Number int
	// Sizes in bytes.
	Units, Versions, Certificates int64
	// Previous is kept until the next reload for its successor to copy from;
	// nil if there is none.
	Previous *Dictionaries
}

// A Port is a TCP port.
type Port uint16

var (
	pathForm = regexp.MustCompile(`^/[A-Za-z0-9_./@+,=~-]*$`)
	wordForm = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)
)

// A Path is a file name that may stand in nginx.conf.
type Path struct{ text string }

// NewPath checks that a path holds nothing that NGINX or Lua would read as
// anything but a path.
func NewPath(path string) (Path, error) {
	if !pathForm.MatchString(path) {
		return Path{}, fmt.Errorf("invalid path %q: must be an absolute path of letters, digits and _./@+,=~-", path)
	}
	return Path{path}, nil
}

func (p Path) String() string { return p.text }

// A Word is a name that may stand in nginx.conf.
type Word struct{ text string }

// NewWord checks that a name is made of letters, digits, - and _.
func NewWord(word string) (Word, error) {
	if !wordForm.MatchString(word) {
		return Word{}, fmt.Errorf("invalid name %q: must consist of letters, digits, - and _", word)
	}
	return Word{word}, nil
}

func (w Word) String() string { return w.text }

// parsedTemplate is parsed once: Render runs with each change.
var parsedTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New(File).Funcs(functions()).Parse(nginxTemplate))
})

// Render writes the static files. profiles are those that have a location of
// their own beside the default one; they must be sorted and distinct. clientHello runs
// Lua for the first message of each TLS client, which makes handshakes slower.
func Render(env Environment, globals model.Globals, profiles []model.Profile, clientHello bool, dictionaries Dictionaries) (map[string][]byte, error) {
	all := append([]model.Profile{globals.Default}, profiles...)
	for _, p := range all {
		if name := env.Directives.Undeclared(p); name != "" {
			return nil, fmt.Errorf("render nginx.conf: no feature declares the directive %s of a profile", name)
		}
	}
	transports, protocols, err := env.transportsOf(all)
	if err != nil {
		return nil, fmt.Errorf("render nginx.conf: %w", err)
	}
	env.Directives = env.Directives.In(env.RunDir.String()).Having(ZonesOf(globals)).Beside(givenBy(globals))
	env.Resources = withParameters(env.Resources, globals.Process.FastCGIParameters)
	env.Resources = withHeaders(env.Resources, clientHello, globals.Process.Tracing.HasCollector)
	files := map[string][]byte{}
	authorities := env.Authorities.String()
	if own := globals.Process.Authorities; own.Name != "" {
		file := directive.Files + "/" + own.Name
		files[file], authorities = own.Bytes, env.RunDir.String()+"/"+file
	}
	ticketKeys := addTicketKeys(files, env.RunDir, globals.Process.TLS)
	if authorities == "" {
		env.Resources.Locations = slices.DeleteFunc(slices.Clone(env.Resources.Locations), func(l resource.Location) bool { return l.Verify })
	}
	values := document{
		Environment: env, Authorities: authorities, WorkerProcesses: env.WorkerProcesses(globals.Process), Process: globals.Process,
		Default: env.location(globals.Default, model.Variant{}), Jumps: env.jumps(all), Shared: env.Directives.SharedLines(all),
		Transports: transports, Protocols: headersOf(globals.Process, env.Resources, protocols...), HTTP: headersOf(globals.Process, env.Resources, protocol{})[0],
		Address: address{globals.Process.ClientAddress}, Log: requestLogOf(env, globals.Process),
		OwnHeaders: ownHeaders(globals.Process, env.Resources), TicketKeys: ticketKeys, DHParam: addDHParam(files, env.RunDir, globals.Process.TLS),
		Worker:    worker{globals.Process.Worker, env, env.WorkerProcesses(globals.Process), len(globals.Process.Listening.At(env.IPv6))},
		Hashes:    hashes{globals.Process.Hashes, globals.Process.RequestLog.Skipped.Bucket()},
		Errors:    errorLog{globals.Process, env.Debug},
		Variables: append(variablesOf(env.Resources, slices.Contains(protocols, protocol{model.FastCGI})), replacedVariables(globals.Process)...), Parameters: parametersOf(env.Resources),
		ErrorPages:  slices.ContainsFunc(env.Directives, func(d directive.Directive) bool { return d.Kind == directive.Statuses }),
		ClientHello: clientHello, MatchLimit: pcre.MatchLimit, JITStack: pcre.JITStack, Tries: model.Tries, MaxTries: model.MaxTries, Dictionaries: dictionaries,
	}
	values.Timeouts.Connect, values.Timeouts.Send, values.Timeouts.Read = model.ConnectTimeout, model.SendTimeout, model.ReadTimeout
	var b bytes.Buffer
	if err := parsedTemplate().Execute(&b, values); err != nil {
		return nil, fmt.Errorf("render nginx.conf: %w", err)
	}
	files[File] = b.Bytes()
	if text := globals.Process.Snippets.Template.String(); text != "" {
		custom, err := renderCustom(text, values, b.Bytes())
		if err != nil {
			return nil, err
		}
		files[File] = custom
	}
	return files, nil
}

// A document is what the template is filled in with.
type document struct {
	Environment
	// Authorities is the file with those of the process, hiding the system's.
	Authorities     string
	WorkerProcesses int
	Process         model.Process
	Worker          worker
	Hashes          hashes
	// Default is the location of most requests.
	Default location
	// Jumps are the locations that requests may jump to.
	Jumps []location
	// Shared are lines that profiles share.
	Shared []string
	// Transports and Protocols are those that profiles use.
	Transports []transport
	Protocols  []headers
	HTTP       headers
	Address    address
	Errors     errorLog
	Log        requestLog
	// TicketKeys and DHParam are files.
	TicketKeys []string
	DHParam    string
	// OwnHeaders are those of requests that no client sets, in lower case.
	OwnHeaders []string
	// Chained is set in a server where Lua joins the addresses of a request.
	Chained bool
	// Variables are those that Lua may set, and Parameters those of FastCGI.
	Variables  []variable
	Parameters []parameter
	// ErrorPages is set where a feature may have responses replaced.
	ErrorPages  bool
	ClientHello bool
	// Limits that Lua and Go share.
	MatchLimit, JITStack, Tries, MaxTries int
	Timeouts                              struct{ Connect, Send, Read time.Duration }
	Dictionaries                          Dictionaries
}

// RoutesInLocation reports whether requests are routed in a location and not before NGINX looks for
// one, so that the server's own lines of the administrator come first.
func (d document) RoutesInLocation() bool {
	return !d.Chained && d.Process.Snippets.Server.String() != ""
}

// SnippetSetsHeaders reports whether lines of the administrator in locations set headers of requests
// to backends: a location that sets one inherits none.
func (d document) SnippetSetsHeaders() bool {
	text := d.Process.Snippets.Location.String()
	return strings.Contains(text, "_set_header") || strings.Contains(text, "fastcgi_param")
}

// Server is the document for one server.
func (d document) Server(chained bool) document {
	d.Chained = chained
	return d
}

type location struct {
	model.Profile
	model.Variant
	// Directives are lines of nginx.conf.
	Directives []string
	// Catches is set where some of them lead to @error_page. A location with a check does
	// not ask the backend then, whose statuses it would take for the auth service's.
	Catches bool
	// Identity is that of TLS connections.
	Identity string
}

func (e Environment) location(p model.Profile, v model.Variant) location {
	return location{p, v, e.Directives.Lines(p), e.Directives.Catches(p), e.Directives.Identity(p)}
}

// Pass is the directive with the upstream block.
func (l location) Pass() string {
	t := transport{protocol{l.Protocol}, l.TLS, l.Identity}
	if l.AsClient {
		// NGINX's own variable: it is http or https.
		return "proxy_pass $scheme://" + strings.Replace(t.Upstream(), "https", "${scheme}", 1)
	}
	scheme := t.scheme() + "://"
	if t.FastCGI() {
		scheme = ""
	}
	return t.Prefix() + "pass " + scheme + t.Upstream()
}

// FastCGI reports whether backends speak it.
func (l location) FastCGI() bool { return protocol{l.Protocol}.FastCGI() }

// A protocol knows the directives of its own.
type protocol struct{ model.Protocol }

// FastCGI reports whether it is that: headers are parameters then.
func (p protocol) FastCGI() bool { return p.Protocol == model.FastCGI }

// Header is the directive for a header of requests to backends, instead of the client's.
// One without a value is not sent.
func (p protocol) Header(name, value string) string {
	if p.FastCGI() {
		return "fastcgi_param HTTP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + " " + value + " if_not_empty;"
	}
	return p.Prefix() + "set_header " + name + " " + value + ";"
}

// withHeaders has all locations send the headers that features declare. While handshakes have no
// policies, there are no values, which costs requests nothing. traced adds the trace of the request,
// which Lua decides about.
func withHeaders(r resource.Resources, clientHello, traced bool) resource.Resources {
	r.Headers, r.Locations = slices.Clone(r.Headers), slices.Clone(r.Locations)
	for i := range r.Headers {
		if !clientHello {
			r.Headers[i].Value = resource.Value{}
		}
	}
	if traced {
		r.Headers = append(r.Headers, resource.Header{Name: resource.NewWord("traceparent"), Value: resource.VariableValue("hg_trace")})
	}
	for i := range r.Locations {
		r.Locations[i].Headers = slices.Concat(r.Locations[i].Headers, r.Headers)
	}
	return r
}

// A transport is a protocol, with TLS or without. Each has an upstream block of its
// own for each identity, since idle connections are kept by block: a request that gets one takes
// the certificates of both sides for granted.
type transport struct {
	protocol
	TLS      bool
	Identity string
}

func (t transport) scheme() string {
	if t.TLS {
		return t.String() + "s"
	}
	return t.String()
}

// Upstream is the name of the block.
func (t transport) Upstream() string {
	if t.Identity == "" {
		return "hg_" + t.scheme()
	}
	return "hg_" + t.scheme() + "_" + t.Identity
}

// transportsOf are those of profiles, and HTTP, in a fixed order. protocols are theirs.
func (e Environment) transportsOf(profiles []model.Profile) (transports []transport, protocols []protocol, err error) {
	used := map[transport]bool{{protocol: protocol{model.HTTP}}: true}
	for _, p := range profiles {
		identity := e.Directives.Identity(p)
		used[transport{protocol{p.Protocol}, p.TLS, identity}] = true
		if p.AsClient && (p.Protocol != model.HTTP || !p.TLS) {
			return nil, nil, errors.New("only HTTP with TLS can follow the client")
		}
		if p.AsClient {
			used[transport{protocol{model.HTTP}, false, identity}] = true
		}
	}
	transports = slices.SortedFunc(maps.Keys(used), func(a, b transport) int { return strings.Compare(a.Upstream(), b.Upstream()) })
	for _, t := range transports {
		if t.TLS && t.FastCGI() {
			return nil, nil, errors.New("FastCGI has no TLS")
		}
		if !slices.Contains(protocols, t.protocol) {
			protocols = append(protocols, t.protocol)
		}
	}
	return transports, protocols, nil
}

// Name is the location's, without the "@".
func (l location) Name() string { return l.Profile.Location(l.Variant) }

// jumps are the locations of profiles. Variants with a check are left out if no feature
// declares the location of its call.
func (e Environment) jumps(profiles []model.Profile) []location {
	list := make([]location, 0, len(profiles)*len(model.Variants()))
	for _, p := range profiles {
		for _, v := range model.Variants() {
			if v.Check == model.NoCheck || e.Resources.HasLocation("_check_"+v.Check.String()) {
				list = append(list, e.location(p, v))
			}
		}
	}
	return list
}

// bytesText is a size of memory as NGINX reads it.
func bytesText(n int64) string { return directive.Bytes(n) }

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func seconds(d time.Duration) string {
	if d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// WorkerProcesses is the number of NGINX's workers.
func (e Environment) WorkerProcesses(p model.Process) int {
	if p.Workers > 0 {
		return p.Workers
	}
	return e.Workers
}
