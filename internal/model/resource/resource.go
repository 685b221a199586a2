// Package resource declares what features need of NGINX's configuration beside
// settings of a profile: shared memory, variables, internal locations, upstream
// blocks, thread pools, and Lua that does not depend on a route.
//
// The values are safe in nginx.conf: numbers, and names of a fixed form. A name of
// another form is a programming error and panics when the declaration is made.
package resource

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Resources are what a feature needs, or all features together.
type Resources struct {
	Dictionaries []Dictionary
	Variables    []Variable
	Locations    []Location
	Upstreams    []Upstream
	Parameters   []Parameter
	// Headers are what only Headgate says about a client's TLS connection. All requests to
	// backends and services lose what the client sends by these names. The values are
	// sent while handshakes have policies.
	Headers []Header
	Threads []Threads
	// InitWorker runs once in each worker, before it serves.
	InitWorker []Handler
	// Log runs at the end of every request, of all hosts. It gets the request's
	// table, nil if there was no route for it.
	Log []Handler
}

// The forms of what NGINX and Lua get as it is.
var (
	nameForm      = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	wordForm      = regexp.MustCompile(`^[A-Za-z0-9.-]*$`)
	moduleForm    = regexp.MustCompile(`^headgate(\.[a-z][a-z0-9_]*)+$`)
	functionForm  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	parameterForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// A Name is a name in nginx.conf that Headgate made.
type Name struct{ text string }

// NewName is for names that the source code spells.
func NewName(text string) Name {
	return Name{matching("name", nameForm, text)}
}

func (n Name) String() string { return n.text }

// A Dictionary is shared memory of all workers, ngx.shared.NAME in Lua.
type Dictionary struct {
	Name Name
	// Size is in bytes. Another size empties the dictionary at a reload.
	Size int64
}

// A Variable is empty, or has Default, until Lua sets it by
// headgate.request.set_variable, which removes what the kind does not allow.
type Variable struct {
	Name    Name
	Kind    VariableKind
	Default Word
}

// A VariableKind says where a variable is printed, and so which bytes Lua may
// put there.
type VariableKind int

const (
	// Line is a part of a header line: without NUL and line ends.
	Line VariableKind = iota
	// Target is a path with a query: it starts with a slash, and what would end a
	// request line is percent-encoded.
	Target
	// PEM is certificates or a key in PEM, for a directive that would take the name of a
	// file: NGINX takes what stands behind "data:".
	PEM
	// Content is text in the body of a response: any bytes.
	Content
)

func (k VariableKind) String() string { return [...]string{"line", "target", "pem", "content"}[k] }

// A Word is text of letters, digits, hyphens and dots.
type Word struct{ text string }

// NewWord is for words that the source code spells.
func NewWord(text string) Word { return Word{matching("word", wordForm, text)} }

func (w Word) String() string { return w.text }

// A Handler is a Lua function.
type Handler struct{ module, function string }

// NewHandler is for functions of a module below headgate.
func NewHandler(module, function string) Handler {
	return Handler{matching("module", moduleForm, module), matching("function", functionForm, function)}
}

// String is the call in Lua without arguments.
func (h Handler) String() string { return h.Call("") }

// Call is the call with an argument.
func (h Handler) Call(argument string) string {
	return fmt.Sprintf("require(%q).%s(%s)", h.module, h.function, argument)
}

// An Upstream is a block whose endpoints Lua names for each try.
type Upstream struct {
	Name     Name
	Balancer Handler
	// Keeps keeps connections for further requests, as the ConfigMap says. A kept
	// connection is shared by all names of one address: not for TLS.
	Keeps bool
}

// A Location is an internal one: NGINX sends a subrequest there, which goes on to
// an upstream block as a request of Headgate's own, without the client's body.
type Location struct {
	// Name begins with an underscore, so that no request's path is the location's.
	// Those named _check_ and a model.Check are for variants with that check.
	Name     Name
	Upstream Name
	// TLS uses https; ServerName is the variable with the name for SNI.
	TLS        bool
	ServerName Name
	// Verify verifies the certificate for that name, by the authorities of the
	// process. Where there are none, the location is left out.
	Verify bool
	// Method and Target are variables.
	Method, Target Name
	// Headers are all that the request has beside those that NGINX's
	// proxy_set_header of the server level would set, which they replace.
	Headers []Header
	// HeaderFilter runs before the answer's header would be sent.
	HeaderFilter Handler
	// AnswerFilter runs before the header of an answer is sent to a client, and AnswerBody for each part of its
	// body: in @NAME_answer, which is the same for requests themselves.
	AnswerFilter, AnswerBody Handler
}

// A Header is a header with its value. One without a value is not sent.
type Header struct {
	Name  Word
	Value Value
}

// A Value is a variable or a word.
type Value struct{ text string }

// VariableValue is what a variable holds, one of NGINX's own or a declared one.
func VariableValue(name string) Value { return Value{"$" + NewName(name).text} }

// WordValue is the word itself.
func WordValue(text string) Value { return Value{NewWord(text).text} }

// String is the value as nginx.conf has it.
func (v Value) String() string {
	if v.text == "" {
		return `""`
	}
	return v.text
}

// A Parameter is sent to FastCGI backends, unless the variable is empty. If all backends get
// a parameter of that name, that value is the default of the variable, which is sent instead.
// nginx.conf has the variable while a profile has FastCGI.
type Parameter struct {
	Name     ParameterName
	Variable Name
}

// A ParameterName is text of letters, digits and underscores.
type ParameterName struct{ text string }

// NewParameterName is for names that the source code spells.
func NewParameterName(text string) ParameterName {
	return ParameterName{matching("parameter", parameterForm, text)}
}

func (n ParameterName) String() string { return n.text }

// Threads are threads beside the workers, for Lua that takes long.
type Threads struct {
	Name Name
	// Count is the number of threads, and Queue how many calls may wait for one.
	Count, Queue int
}

// Merge puts lists together. Two declarations of one name are a programming
// error.
func Merge(list ...Resources) Resources {
	var all Resources
	for _, r := range list {
		all.Dictionaries = append(all.Dictionaries, r.Dictionaries...)
		all.Variables = append(all.Variables, r.Variables...)
		all.Locations = append(all.Locations, r.Locations...)
		all.Upstreams = append(all.Upstreams, r.Upstreams...)
		all.Parameters = append(all.Parameters, r.Parameters...)
		all.Headers = append(all.Headers, r.Headers...)
		all.Threads = append(all.Threads, r.Threads...)
		all.InitWorker = append(all.InitWorker, r.InitWorker...)
		all.Log = append(all.Log, r.Log...)
	}
	distinct(all.Dictionaries, func(d Dictionary) Name { return d.Name }, "hg_")
	distinct(all.Variables, func(v Variable) Name { return v.Name }, "hg_")
	distinct(all.Locations, func(l Location) Name { return l.Name }, "_")
	distinct(all.Upstreams, func(u Upstream) Name { return u.Name }, "hg_")
	parameters := map[ParameterName]bool{}
	for _, p := range all.Parameters {
		if parameters[p.Name] {
			panic(fmt.Sprintf("resource: the parameter %s is declared twice", p.Name))
		}
		parameters[p.Name] = true
	}
	distinct(all.Threads, func(t Threads) Name { return t.Name }, "")
	return all
}

// HasLocation reports whether a location of that name is declared.
func (r Resources) HasLocation(name string) bool {
	return slices.ContainsFunc(r.Locations, func(l Location) bool { return l.Name.text == name })
}

func distinct[T any](list []T, name func(T) Name, prefix string) {
	seen := map[Name]bool{}
	for _, one := range list {
		n := name(one)
		if len(n.text) <= len(prefix) || !strings.HasPrefix(n.text, prefix) {
			panic(invalid("name", n.text))
		}
		if seen[n] {
			panic(fmt.Sprintf("resource: %s is declared twice", n))
		}
		seen[n] = true
	}
}

func matching(what string, form *regexp.Regexp, text string) string {
	if !form.MatchString(text) {
		panic(invalid(what, text))
	}
	return text
}

func invalid(what, text string) string {
	return fmt.Sprintf("resource: %q is not a valid %s in nginx.conf", text, what)
}
