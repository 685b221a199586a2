package snippet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// Options are what a text may refer to.
type Options struct {
	// Defined are variables that other snippets of the same requests define, and
	// Administrator those of the administrator's text, in lower case.
	Defined, Administrator []string
}

type directive = crossplane.Directive

// A parser is one call of Parse.
type parser struct {
	options Options
	place   Place
	// taken are the directives of the place, and elsewhere those of others.
	taken, elsewhere map[string]kind
	own              map[string]bool
	out              *Snippet
	count            int
}

// Parse translates a text. It has no error: what it can't read is a refusal that guards.
func Parse(text string, place Place, options Options) *Snippet {
	p := &parser{options: options, place: place, taken: directives(), elsewhere: directives(), own: map[string]bool{}, out: &Snippet{}}
	tree, ok := p.read(text, place)
	if !ok {
		return p.out
	}
	p.collect(tree)
	p.out.Defines = slices.Sorted(maps.Keys(p.own))
	for _, name := range options.Defined {
		p.own[name] = true
	}
	in := atLocation
	if place == InServer {
		in = atServer
	}
	b := &block{program: &p.out.Program}
	if place == InAuth {
		p.taken = inAuth()
	}
	p.run(&scope{in: in, place: place, block: b, steps: &b.program.Steps, seen: map[string]bool{}}, tree)
	b.finish(nil)
	slices.SortStableFunc(p.out.Refusals, func(a, b Refusal) int { return cmp.Compare(a.Line, b.Line) })
	return p.out
}

// collect notes all variables that the text defines: NGINX knows them before they are set.
func (p *parser) collect(tree crossplane.Directives) {
	for _, d := range tree {
		for i, argument := range d.Args {
			d.Args[i] = unescape.Replace(argument)
		}
		p.define(d)
		p.collect(d.Block)
	}
}

func (p *parser) refuse(r Refusal) { p.out.Refusals = append(p.out.Refusals, r) }

// read has crossplane read the text in a configuration of one block, which says what NGINX
// allows there.
func (p *parser) read(text string, place Place) (crossplane.Directives, bool) {
	if wrong := p.check(text); wrong != nil {
		p.refuse(Refusal{Line: wrong.line, Reason: wrong.message, Guards: true})
		return nil, false
	}
	outside := []string{"http", "server", "location /"}
	if place == InServer {
		outside = outside[:2]
	}
	text = strings.Join(outside, " {") + " {" + text + "\n" + strings.Repeat("}", len(outside))
	payload, err := crossplane.Parse("snippet", &crossplane.ParseOptions{
		Open:             func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		SingleFile:       true,
		DirectiveSources: sources(),
		LexOptions:       lexOptions(),
	})
	if err == nil && len(payload.Config) != 1 {
		err = errors.New("the text has several files")
	}
	if err != nil {
		p.refuse(Refusal{Line: 1, Reason: err.Error(), Guards: true})
		return nil, false
	}
	for _, e := range payload.Config[0].Errors {
		p.refuse(syntaxRefusal(e.Error))
	}
	tree := payload.Config[0].Parsed
	for range outside {
		if len(tree) != 1 {
			return nil, false
		}
		tree = tree[0].Block
	}
	return tree, true
}

func lexOptions() crossplane.LexOptions {
	return crossplane.LexOptions{Lexers: []crossplane.RegisterLexer{(&crossplane.Lua{}).RegisterLexer()}}
}

// syntaxRefusal is about what NGINX would not start with. A text with it has never run.
func syntaxRefusal(err error) Refusal {
	r := Refusal{Line: 1, Reason: err.Error(), Guards: true}
	if at := (*crossplane.ParseError)(nil); errors.As(err, &at) {
		r.Reason = at.What
		r.Directive, _, _ = strings.Cut(at.Statement, " ")
		if at.Line != nil {
			r.Line = *at.Line
		}
	}
	return r
}

// check refuses texts that do not consist of whole directives. It takes all of the lexer's
// tokens, since the lexer's goroutine waits for that, and allows fewer than it sends ahead,
// so that it never waits in crossplane.Parse.
func (p *parser) check(text string) *textError {
	if wrong := checkLength(text); wrong != nil {
		return wrong
	}
	// Lua has other words. Its directives are refused in any case.
	if !strings.Contains(text, "_by_lua_block") {
		if wrong := checkWords(text); wrong != nil {
			return wrong
		}
	}
	var wrong *textError
	c := tokens{starts: true}
	for t := range crossplane.LexWithOptions(strings.NewReader(text), lexOptions()) {
		if wrong == nil {
			wrong = c.next(t)
		}
	}
	if wrong == nil && !c.starts {
		wrong = &textError{1 + strings.Count(strings.TrimRight(text, "\n"), "\n"), `unexpected end: ";" is missing`}
	}
	return wrong
}

// tokens follows the tokens of a text.
type tokens struct {
	count, depth int
	// starts is set where a directive may start, and condition behind "if".
	starts, condition bool
}

func (c *tokens) next(t crossplane.NgxToken) *textError {
	c.count++
	mark := ""
	if !t.IsQuoted {
		mark = t.Value
	}
	switch {
	case t.Error != nil:
		refusal := syntaxRefusal(t.Error)
		return &textError{refusal.Line, refusal.Reason}
	case c.count > maxTokens:
		return &textError{t.Line, fmt.Sprintf("the text has too many words: %d are allowed", maxTokens)}
	case strings.HasPrefix(mark, "#"):
		return nil
	case c.condition && !strings.HasPrefix(t.Value, "("):
		return &textError{t.Line, "the condition is not in parentheses"}
	case mark == "{":
		c.depth++
	case mark == "}":
		c.depth--
	}
	if c.depth > maxDepth {
		return &textError{t.Line, fmt.Sprintf("too many blocks are in one another: %d are allowed", maxDepth)}
	}
	c.condition = c.starts && mark == "if"
	c.starts = mark == ";" || mark == "{" || mark == "}"
	return nil
}
