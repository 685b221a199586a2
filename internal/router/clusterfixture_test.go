package router_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/unit"
)

// questionsEach is the number of questions about one clusterFixture.
const questionsEach = 500

// A clusterFixture is a set of units, with names and paths similar to theirs, from
// which questions are made.
type clusterFixture struct {
	*rand.Rand
	units []unit.Unit
	// alike allows patterns that releases of the library match differently.
	alike bool
	// own are texts that a fuzzer came up with: a pattern, a name and a path.
	own          [3]string
	names, paths []string
}

func newWorld(seed uint64, alike bool, own [3]string) *clusterFixture {
	w := &clusterFixture{Rand: rand.New(rand.NewPCG(seed, 7)), alike: alike, own: own, paths: []string{"/"}}
	if w.own[1] != "" {
		w.names = append(w.names, w.own[1])
	}
	if w.own[2] != "" {
		w.paths = append(w.paths, w.own[2])
	}
	if seed%4 == 0 {
		w.build()
	} else {
		w.make()
	}
	w.units = append(w.units, unit.FromGlobals(model.Globals{}))
	return w
}

func (w *clusterFixture) chance(of int) bool { return w.IntN(of) == 0 }

func pick[T any](w *clusterFixture, from ...T) T { return from[w.IntN(len(from))] }

// make makes units that build would make, and others.
func (w *clusterFixture) make() {
	var hosts []string
	for range 1 + w.IntN(4) {
		hosts = append(hosts, w.name())
	}
	hosts = append(hosts, model.DefaultHost)
	for _, host := range hosts {
		if !w.chance(10) {
			w.units = append(w.units, unit.FromHost(w.host(host)))
		}
		if !w.chance(10) {
			w.units = append(w.units, unit.FromName(w.leading(host, hosts)))
		}
	}
	for range w.IntN(3) {
		w.units = append(w.units, unit.FromName(w.leading(w.name(), hosts)))
	}
	if !w.chance(3) {
		w.units = append(w.units, unit.FromNamePatterns(w.namePatterns(hosts)))
	}
	// The newest of equal names is the one in shared memory.
	slices.Reverse(w.units)
	seen := map[unit.Key]bool{}
	w.units = slices.DeleteFunc(w.units, func(u unit.Unit) bool {
		was := seen[u.Key]
		seen[u.Key] = true
		return was
	})
	if w.chance(8) {
		u := &w.units[w.IntN(len(w.units))]
		u.Payload = []byte(pick(w, "", "null", "[", "7", `{"host":7,"routes":7,"leading_wildcards":7}`, `{"routes":[{}]}`, `{"host":null}`))
		u.Version = "broken"
	}
}

// leading is a name that mostly belongs to the host of the same name.
func (w *clusterFixture) leading(name string, hosts []string) model.Name {
	w.names = append(w.names, name)
	n := model.Name{Name: name, Host: name, HasTLS: w.chance(3)}
	if w.chance(4) || !slices.Contains(hosts, name) {
		n.Host = pick(w, hosts...)
	}
	n.Host = cmp.Or(n.Host, model.DefaultHost) // No host has an empty name.
	return n
}

func (w *clusterFixture) namePatterns(hosts []string) model.NamePatterns {
	var p model.NamePatterns
	for range w.IntN(4) {
		p.LeadingWildcards = append(p.LeadingWildcards, w.leading("*."+w.name(), hosts))
		p.TrailingWildcards = append(p.TrailingWildcards, w.leading(w.name()+".*", hosts))
	}
	for range w.IntN(4) {
		// Half of them may match anywhere.
		text := w.regex(pick(w, "^", "^", "", "a", "x.", `\.`, `^[\d\[_]`))
		n := w.leading("~"+text, hosts)
		p.Regexes = append(p.Regexes, n)
	}
	return p
}

func (w *clusterFixture) label() string {
	return pick(w, "a", "b", "a", "b", "www", "x1", "b-c", "_d", "é", "a+b", "")
}

// name is mostly one that a rule, an alias or a client may have.
func (w *clusterFixture) name() string {
	if len(w.names) > 0 && w.chance(3) {
		name := pick(w, w.names...)
		return pick(w, name, "a."+name, "*."+name, name+".b", strings.TrimPrefix(name, "*."), strings.TrimPrefix(name, "a."))
	}
	if w.chance(12) {
		return pick(w, "10.0.0.1", "0.0.1", "10.0.0", "10.0.0.1000", "1.10.0.0.1", "[::1]", "_")
	}
	labels := make([]string, 1+w.IntN(4))
	for i := range labels {
		labels[i] = w.label()
	}
	if w.chance(6) {
		labels[0] = "*"
	}
	return strings.Join(labels, ".")
}

func (w *clusterFixture) host(name string) model.Host {
	h := model.Host{Name: name}
	patterns, mixed := w.chance(3), w.chance(20)
	for i := range w.IntN(10) {
		r := model.Route{
			// Its own profile identifies the route.
			Profile: model.Profile{}.With(model.ProfileValue{Name: "size", Number: int64(i)}),
			Backend: pick(w, "", "ns/a/80", "ns/b/http"),
			Denied:  w.chance(8),
			Origin:  model.Origin{Namespace: pick(w, "ns", "ns", "other"), Ingress: "i"},
		}
		if r.Backend != "" {
			r.Fallback, r.Default = pick(w, "", "", "ns/c/"), w.chance(4)
		}
		for range w.IntN(3) {
			r.Policies = append(r.Policies, model.Policy{Feature: "some", Value: w.IntN(2)})
		}
		if patterns != (mixed && w.chance(2)) {
			r.Kind, r.Path = model.Pattern, w.pathPattern()
		} else {
			r.Kind, r.Path = pick(w, model.Exact, model.Prefix, model.Prefix), w.path()
			if r.Kind == model.Prefix && r.Path != "/" {
				bare := strings.TrimSuffix(r.Path, "/")
				r.Path, r.Slash = bare, bare != r.Path
				w.paths = append(w.paths, bare)
			}
		}
		h.Routes = append(h.Routes, r)
	}
	return h
}

// path is one of a rule.
func (w *clusterFixture) path() string {
	path := "/"
	if w.chance(2) {
		path = strings.ToValidUTF8(pick(w, w.paths...), "?")
	}
	path += pick(w, "", "/", "a", "/b", "/a/", "/a/b/", "/A", "b/c", "/é", "/%41", "/a.b", "/*", "/healthz")
	path = "/" + strings.TrimLeft(path, "/")
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	w.paths = append(w.paths, path)
	return path
}

func (w *clusterFixture) pathPattern() string {
	switch w.IntN(6) {
	case 0:
		return "^" + w.path()
	case 1:
		// All bytes that Lua takes literally, and some that it does not.
		text := pick(w, "/x_~!", "/@#%&=:;,", "/<>'\"`-Z", "/a b", "/[a", "/$", "/é")
		w.paths = append(w.paths, text+"/b", strings.ToUpper(text))
		if _, err := pcre.Compile("^"+text, pcre.Options{Caseless: true}); err != nil {
			return "^/"
		}
		return "^" + text
	}
	return w.regex("^/")
}

// regex is a pattern that PCRE accepts, as build writes it into units.
func (w *clusterFixture) regex(start string) string {
	var text string
	switch {
	case !w.alike:
		// These take few steps: releases count steps differently.
		text = start + w.expression(0) + pick(w, "", "$", "(/|$)(.*)", "("+w.atom(0)+"|"+w.expression(0)+")", "(?!"+w.atom(0)+")", "|"+w.expression(0))
	case w.own[0] != "" && w.chance(3):
		text = pick(w, "", start) + w.own[0]
	case w.chance(5):
		text = start + pick(w, "(a+)+$", "(a|aa)*$", "(?:(?!.*[a-z]*x$).)*b", strings.Repeat("a", pcre.MaxLength-10)+"|b")
	default:
		text = start + w.expression(3)
	}
	p, err := pcre.Compile(text, pcre.Options{Caseless: true})
	if err != nil {
		return start
	}
	if w.alike && w.chance(10) && strings.ToValidUTF8(text, "") == text {
		return text
	}
	return strings.ToValidUTF8(p.Text(), "")
}

// expression joins some atoms.
func (w *clusterFixture) expression(depth int) string {
	var text strings.Builder
	for range 1 + w.IntN(4) {
		text.WriteString(w.atom(depth))
	}
	return text.String()
}

func (w *clusterFixture) atom(depth int) string {
	plain := []string{"a", "b", "A", "/", "-", "é", `\.`, ".", "[a-b]", "[^/]", `\d`, `\w`, "[^a.]"}
	if depth == 0 || w.chance(2) {
		atom := pick(w, plain...)
		w.paths = append(w.paths, "/"+strings.Trim(atom, `\[]^`))
		return atom + pick(w, "", "", "", "+", "*", "?", "{2}", "*?")
	}
	inner := w.expression(depth - 1)
	if w.chance(2) {
		return pick(w, "("+inner+")", "("+inner+"|"+w.atom(0)+")", "(/|$)(.*)", "(?:"+inner+")?", "(?!"+inner+")", "$", "^"+inner)
	}
	return pick(w,
		"("+inner+")+", "(?:"+inner+"|"+inner+")*", "(?="+inner+")", "(?>"+inner+")", `(`+inner+`)\1`, "(?<=a)"+inner, "(?<!"+w.atom(0)+")",
		"(?-i)"+inner, "(?i:"+inner+")", "(?<n>"+inner+")", `\K`, `\b`+inner, "(?:"+inner+")++", "(?|"+inner+"|b)",
		`\Qa.b\E`, "[[:alpha:]]", `\x41`, fmt.Sprintf("(?:%s){%d,}", inner, w.IntN(3)), "(?s)", "(?m)$", `\A`, `\z`, "(?1)", `\R`)
}

// questions are names and paths similar to those of the clusterFixture.
func (w *clusterFixture) questions() []question {
	list := make([]question, questionsEach)
	for i := range list {
		list[i] = question{w.clientName(), w.clientPath()}
	}
	return list
}

func (w *clusterFixture) clientName() string {
	name := w.name()
	if len(w.names) > 0 && !w.chance(3) {
		name = pick(w, w.names...)
	}
	if w.chance(8) {
		return name
	}
	name = strings.TrimPrefix(name, "~")
	for strings.Contains(name, "*") {
		name = strings.Replace(name, "*", w.label()+pick(w, "", "", "."+w.label()), 1)
	}
	return pick(w, name, name, name, name, name, "a."+name, name+".b", name+".", "."+name, w.mutated(name))
}

func (w *clusterFixture) clientPath() string {
	path := pick(w, w.paths...)
	if w.alike && w.chance(12) {
		path = pick(w, "/"+strings.Repeat("a", 10+w.IntN(40))+pick(w, "", "!"), "/"+strings.Repeat("a/", 1000))
	}
	if w.chance(25) {
		path = pick(w, "/healthz", "/nginx_status")
	}
	switch w.IntN(8) {
	case 0:
		path += "/"
	case 1:
		path += pick(w, "/", "") + pick(w, w.paths...)
	case 2:
		path = path[:w.IntN(len(path)+1)]
	case 3:
		path = w.mutated(path)
	case 4:
		path = strings.ToUpper(path)
	case 5:
		path += pick(w, "x", "/b", "\xff", "\xc3\xa9", "\n", "é/a", "$")
	}
	return path
}

// mutated changes one byte.
func (w *clusterFixture) mutated(text string) string {
	if text == "" {
		return "a"
	}
	bytes := []byte(text)
	bytes[w.IntN(len(bytes))] = pick(w, byte('a'), 'A', '/', '.', '\xff', '-', '_', '*', '\x01', byte(w.IntN(256)))
	return string(bytes)
}
