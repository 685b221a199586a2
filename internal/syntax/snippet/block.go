package snippet

import (
	"fmt"
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/headgate/headgate/internal/syntax/snippet/program"
	"github.com/headgate/headgate/internal/syntax/template"
)

// A where is a kind of block, and the sum of several a set of them.
type where int

const (
	atServer where = 1 << iota
	atLocation
	inLocation
	ifServer
	ifLocation
	inMethods

	locations   = atLocation | inLocation
	anyLocation = locations | ifLocation
	anywhere    = anyLocation | atServer
	steps       = anywhere | ifServer
)

// A scope is a block between braces, which directives are read into.
type scope struct {
	in      where
	place   Place
	block   *block
	outer   *scope
	steps   *[]program.Step
	effects program.Effects
	// seen has directives that may stand once.
	seen map[string]bool
	// closed is set where a directive is refused that may be a guard or a handler.
	closed bool
}

// A block is what becomes a Program: a scope with those of its ifs.
type block struct {
	program  *program.Program
	location *program.Location
	base     *scope
	// ifs has the scopes of ifs, in the order of their index in the program's Effects.
	ifs   []*scope
	inner []*block
}

// run reads a block's directives.
func (p *parser) run(s *scope, tree crossplane.Directives) {
	if s.block.base == nil {
		s.block.base = s
	}
	for _, d := range tree {
		p.count++
		if p.count > maxDirectives {
			p.refuse(Refusal{Line: d.Line, Directive: d.Directive, Reason: fmt.Sprintf("the text has too many directives: %d are allowed", maxDirectives), Guards: true})
			return
		}
		p.directive(s, d)
	}
}

func (p *parser) directive(s *scope, d *directive) {
	known, ok := p.taken[d.Directive]
	if !ok {
		p.refuseIn(s, p.refusalInAuth(d))
		return
	}
	if s.in&known.in == 0 {
		p.fail(s, d, "the directive is not allowed here")
		return
	}
	if wrong := known.shape(d); wrong != "" {
		p.fail(s, d, wrong)
		return
	}
	if known.once {
		if s.seen[d.Directive] {
			p.fail(s, d, "the directive is duplicate")
			return
		}
		s.seen[d.Directive] = true
	}
	if err := known.take(p, s, d); err != nil {
		p.refuseIn(s, Refusal{Line: d.Line, Directive: d.Directive, Reason: err.Error(), Guards: known.guards})
	}
}

// shape says what is wrong with the number of arguments, or with the block. Crossplane
// does not look at directives in nested ifs.
func (k kind) shape(d *directive) string {
	switch n := len(d.Args); {
	case n < k.least, n > k.most && k.most != many:
		return "invalid number of arguments"
	case k.block && !d.IsBlock():
		return "a block is missing"
	case !k.block && d.IsBlock():
		return "the directive has no block"
	}
	return ""
}

// fail refuses what NGINX would not start with.
func (p *parser) fail(s *scope, d *directive, reason string) {
	p.refuseIn(s, Refusal{Line: d.Line, Directive: d.Directive, Reason: reason, Guards: true})
}

// refuseIn refuses a directive. What may be a guard closes the innermost location or if:
// requests that are not for that block never ask it.
func (p *parser) refuseIn(s *scope, r Refusal) {
	if s.in == inMethods {
		s = s.outer
	}
	switch {
	case !r.Guards:
	case s.in == inLocation:
		s.closed, r.Guards = true, false
		r.Effect = "the location answers 503"
	case s.in&(ifServer|ifLocation) != 0:
		s.closed, r.Guards = true, false
		r.Effect = "requests that meet the condition get 503"
	}
	p.refuse(r)
}

func closedSteps() []program.Step { return []program.Step{{Return: 503}} }

// warn is about a directive that does something else than it seems, and idle about one that does
// nothing.
func (p *parser) warn(d *directive, format string, values ...any) {
	p.out.Warnings = append(p.out.Warnings, Warning{Line: d.Line, Directive: d.Directive, Message: fmt.Sprintf(format, values...)})
}

func (p *parser) idle(d *directive, message string) {
	p.out.Warnings = append(p.out.Warnings, Warning{Line: d.Line, Directive: d.Directive, Message: message, Idle: true})
}

// finish gives the program its effects, when all of a block is known: what an if inherits
// may stand behind it.
func (b *block) finish(outer *program.Effects) {
	b.base.effects.Inherit(outer)
	if b.base.closed {
		*b.program = program.Program{Steps: closedSteps()}
		return
	}
	all, has := []program.Effects{b.base.effects}, !b.base.effects.Empty()
	for _, s := range b.ifs {
		own := s.effects
		has = has || !own.Empty()
		from := &b.base.effects
		if s.outer != b.base {
			from = &all[b.index(s.outer)]
		}
		own.Inherit(from)
		own.Methods = nil
		all = append(all, own)
	}
	if has {
		b.program.Effects = all
	} else {
		forget(b.program.Steps)
	}
	inherited := &b.base.effects
	if b.base.in == atServer {
		inherited = nil
	}
	for _, inner := range b.inner {
		inner.finish(inherited)
		b.program.Locations = append(b.program.Locations, *inner.location)
	}
}

// index is that of an if's effects.
func (b *block) index(s *scope) int {
	for i, other := range b.ifs {
		if other == s {
			return i + 1
		}
	}
	return 0
}

func forget(steps []program.Step) {
	for i := range steps {
		steps[i].Use = 0
		forget(steps[i].Then)
	}
}

// location reads a location block.
func (p *parser) location(s *scope, d *directive) error {
	l := &program.Location{}
	switch value := d.Args[0]; {
	case len(d.Args) == 2:
		l.Match, l.Path = d.Args[0], d.Args[1]
	case strings.HasPrefix(value, "@"):
		l.Match, l.Path = "@", value[1:]
	default:
		l.Path = value
		for _, match := range []string{"=", "^~", "~*", "~"} {
			if path, ok := strings.CutPrefix(value, match); ok {
				l.Match, l.Path = match, path
				break
			}
		}
	}
	if err := p.checkLocation(s, l); err != nil {
		return err
	}
	b := &block{program: &l.Program, location: l}
	s.block.inner = append(s.block.inner, b)
	before := len(p.out.Warnings)
	p.run(&scope{in: inLocation, place: s.place, block: b, outer: s, steps: &l.Steps, seen: map[string]bool{}}, d.Block)
	p.explainLocation(b, d, before)
	return nil
}

// explainLocation leaves one warning, or the refusal, for one cause. Where the location is closed,
// or has no backend, what its directives do follows from that. Before is how many warnings there
// were before the location.
func (p *parser) explainLocation(b *block, d *directive, before int) {
	within := p.out.Warnings[before:]
	if b.base.closed {
		p.out.Warnings = p.out.Warnings[:before]
		return
	}
	if l := b.location; l.Internal || ends(l.Steps) || b.base.deniesAll() {
		return
	}
	within = slices.DeleteFunc(within, func(w Warning) bool { return w.Idle })
	p.out.Warnings = p.out.Warnings[:before+len(within)]
	p.warn(d, "a location of a snippet has no backend and no files: requests that its directives let pass get 404")
}

// ends reports whether steps answer all requests, or have them routed again.
func ends(steps []program.Step) bool {
	for _, step := range steps {
		if step.Return != 0 || (step.Rewrite == ".*" || step.Rewrite == "^") && step.Flag != "" && step.Flag != "break" {
			return true
		}
	}
	return false
}

// deniesAll reports whether the first rule denies all addresses.
func (s *scope) deniesAll() bool {
	return len(s.effects.Rules) > 0 && s.effects.Rules[0] == program.Rule{Network: "all"}
}

func (p *parser) checkLocation(s *scope, l *program.Location) error {
	outer := s.block.location
	switch l.Match {
	case "~", "~*":
		return p.checkPattern(l.Path, l.Match == "~*")
	case "@":
		if s.in != atServer {
			return fmt.Errorf("named locations are allowed in a server only")
		}
	case "=", "^~", "":
	default:
		return fmt.Errorf("invalid modifier %q: must be one of =, ^~, ~ and ~*", l.Match)
	}
	for _, inner := range s.block.inner {
		if other := inner.location; other.Path == l.Path && (other.Match == "=") == (l.Match == "=") && (other.Match == "@") == (l.Match == "@") && !strings.HasPrefix(other.Match, "~") {
			return fmt.Errorf("duplicate location %q", l.Path)
		}
	}
	within := ""
	if outer != nil {
		within = outer.Path
	} else if s.in == atLocation {
		within = "/"
	}
	if !strings.HasPrefix(l.Path, within) {
		return fmt.Errorf("location %q is outside of location %q", l.Path, within)
	}
	if outer != nil && (outer.Match == "=" || outer.Match == "@") {
		return fmt.Errorf("a location can't be in location %q", outer.Match+" "+outer.Path)
	}
	return nil
}

// ifBlock reads an if.
func (p *parser) ifBlock(s *scope, d *directive) error {
	condition, err := p.condition(d.Args)
	if err != nil {
		return err
	}
	in := ifServer
	if s.in&anyLocation != 0 {
		in = ifLocation
	}
	var then []program.Step
	inner := &scope{in: in, place: s.place, block: s.block, outer: s, steps: &then, seen: map[string]bool{}}
	step := program.Step{If: condition}
	if in == ifLocation {
		s.block.ifs = append(s.block.ifs, inner)
		step.Use = len(s.block.ifs)
	}
	p.run(inner, d.Block)
	if step.Then = then; inner.closed {
		step.Then = closedSteps()
	}
	*s.steps = append(*s.steps, step)
	return nil
}

// condition reads that of an if, without the parentheses.
func (p *parser) condition(words []string) (*program.Condition, error) {
	if len(words) == 0 || !strings.HasPrefix(words[0], "$") {
		return nil, fmt.Errorf("invalid condition %q: must begin with a variable; files can't be tested", strings.Join(words, " "))
	}
	piece, err := p.variable(strings.ToLower(words[0][1:]))
	if err != nil {
		return nil, err
	}
	c := &program.Condition{}
	if piece != (template.Piece{}) {
		c.Variable = template.Template{piece}
	}
	if len(words) == 1 {
		return c, nil
	}
	if len(words) != 3 {
		return nil, fmt.Errorf("invalid condition %q: must be a variable, or a variable, an operator and a value", strings.Join(words, " "))
	}
	switch c.Is = words[1]; c.Is {
	case "=", "!=":
		c.To, err = p.template(words[2])
	case "~", "!~", "~*", "!~*":
		c.Expression, err = words[2], p.checkPattern(words[2], strings.HasSuffix(c.Is, "*"))
	default:
		err = fmt.Errorf("invalid operator %q: must be one of =, !=, ~, !~, ~* and !~*", c.Is)
	}
	return c, err
}
