package nginxconf

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/headgate/headgate/internal/model/directive"
)

// TemplateVersion is that of the data and functions of templates.
const TemplateVersion = 1

// Bounds of a template of the administrator.
const (
	maxTemplate = 1 << 20
	maxRendered = 32 << 20
	// maxSteps is how many blocks of a template are run.
	maxSteps = 1_000_000
)

// Template is the built-in template.
func Template() string { return nginxTemplate }

// A TemplateError is what is wrong with a template of the administrator.
type TemplateError struct {
	// Line is 0 if it is not known.
	Line   int
	Reason string
}

func (e *TemplateError) Error() string { return e.Reason }

// functions are all that templates have, with the operators of text/template.
func functions() template.FuncMap {
	return template.FuncMap{"onoff": onOff, "seconds": seconds, "size": bytesText, "print": printText, "variable": declared}
}

func declared(name any, value string) (string, error) {
	return printText(directive.Declaration(fmt.Sprint(name), value))
}

// operators are those functions of text/template that take little time and memory.
var operators = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index"}

// printText joins texts, which must be short: templates could double one again and again.
func printText(values ...any) (string, error) {
	const longest = 1 << 16
	text := fmt.Sprint(values...)
	if len(text) > longest {
		return "", fmt.Errorf("a text of %d bytes is too long: must be at most %d", len(text), longest)
	}
	return text, nil
}

var versionForm = regexp.MustCompile(`^\{\{-? ?/\* headgate template v(\d+) \*/ ?-?\}\}`)

// checkHead refuses what is not a template for this version.
func checkHead(text string) error {
	const see = "; see docs/template.md, and `headgate template` for the built-in one"
	switch found := versionForm.FindStringSubmatch(text); {
	case len(text) > maxTemplate:
		return &TemplateError{Reason: fmt.Sprintf("%d bytes are too many: must be at most %d", len(text), maxTemplate)}
	case strings.Contains(text, "$all.Cfg") || strings.Contains(text, "buildLuaSharedDictionaries"):
		return &TemplateError{Line: 1, Reason: "this is a template of ingress-nginx, whose data Headgate does not have" + see}
	case found == nil:
		return &TemplateError{Line: 1, Reason: fmt.Sprintf("must begin with {{- /* headgate template v%d */ -}}", TemplateVersion) + see}
	case found[1] != strconv.Itoa(TemplateVersion):
		return &TemplateError{Line: 1, Reason: fmt.Sprintf("is written for version %s of templates: must be %d", found[1], TemplateVersion) + see}
	}
	return nil
}

// renderCustom renders by a template of the administrator. Its error is a *TemplateError.
func renderCustom(text string, values document, builtIn []byte) ([]byte, error) {
	if err := checkHead(text); err != nil {
		return nil, err
	}
	steps := 0
	tick := func() (string, error) {
		if steps++; steps > maxSteps {
			return "", errSteps
		}
		return "", nil
	}
	funcs := functions()
	funcs["tick"] = tick
	parsed, err := template.New(customName).Funcs(funcs).Parse(text)
	if err != nil {
		return nil, templateError(err)
	}
	if err := bound(parsed); err != nil {
		return nil, err
	}
	out := boundedBuffer{}
	if err := parsed.Execute(&out, values); err != nil {
		return nil, templateError(err)
	}
	if err := checkRendered(out.Bytes(), builtIn); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var errSteps = fmt.Errorf("runs more than %d blocks", maxSteps)

// customName is that of the template in errors.
const customName = "nginx.tmpl"

var templatePlace = regexp.MustCompile(`^template: (?:nginx\.tmpl|[^:]*):(\d+)(?::\d+)?: (?s:(.*))$`)

func templateError(err error) error {
	if errors.Is(err, errSteps) {
		return &TemplateError{Reason: errSteps.Error()}
	}
	found := templatePlace.FindStringSubmatch(err.Error())
	if found == nil {
		return &TemplateError{Reason: err.Error()}
	}
	line, _ := strconv.Atoi(found[1])
	return &TemplateError{Line: line, Reason: found[2]}
}

type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("the result is longer than %d bytes", maxRendered)
	}
	return b.Buffer.Write(p)
}

// bound refuses functions that are not for templates, and has each block count when it is run.
func bound(t *template.Template) error {
	counting, err := template.New("").Funcs(template.FuncMap{"tick": func() string { return "" }}).Parse("{{tick}}")
	if err != nil {
		return err
	}
	w := walker{calls: map[string][]string{}, count: counting.Root.Nodes[0], allowed: append(slices.Collect(maps.Keys(functions())), operators...)}
	for _, part := range t.Templates() {
		if part.Tree == nil {
			continue
		}
		w.tree, w.name = part.Tree, part.Name()
		w.list(part.Root, true)
	}
	for name := range w.calls {
		if w.err == nil && w.reaches(name, name, map[string]bool{}) {
			w.err = &TemplateError{Reason: fmt.Sprintf("the template %q calls itself", name)}
		}
	}
	return w.err
}

// reaches reports whether one template calls another, or one that does: each call would take memory
// as long as it runs.
func (w *walker) reaches(from, to string, seen map[string]bool) bool {
	for _, name := range w.calls[from] {
		if name == to {
			return true
		}
		if !seen[name] {
			seen[name] = true
			if w.reaches(name, to, seen) {
				return true
			}
		}
	}
	return false
}

// A walker goes through a parsed template.
type walker struct {
	tree *parse.Tree
	// name is that of the template, and calls are those that each template calls.
	name    string
	calls   map[string][]string
	count   parse.Node
	allowed []string
	err     error
}

func (w *walker) list(l *parse.ListNode, counts bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		w.node(n)
	}
	if counts {
		l.Nodes = append([]parse.Node{w.count.Copy()}, l.Nodes...)
	}
}

func (w *walker) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ActionNode:
		w.pipe(n.Pipe)
	case *parse.IfNode:
		w.branch(&n.BranchNode, false)
	case *parse.WithNode:
		w.branch(&n.BranchNode, false)
	case *parse.RangeNode:
		w.branch(&n.BranchNode, true)
	case *parse.TemplateNode:
		w.calls[w.name] = append(w.calls[w.name], n.Name)
		w.pipe(n.Pipe)
	case *parse.PipeNode:
		w.pipe(n)
	case *parse.ChainNode:
		w.node(n.Node)
	case *parse.IdentifierNode:
		if !slices.Contains(w.allowed, n.Ident) && w.err == nil {
			location, _ := w.tree.ErrorContext(n)
			w.err = templateError(errors.New("template: " + location + ": function " + strconv.Quote(n.Ident) + " is not for templates"))
		}
	}
}

func (w *walker) branch(b *parse.BranchNode, counts bool) {
	w.pipe(b.Pipe)
	w.list(b.List, counts)
	w.list(b.ElseList, false)
}

func (w *walker) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		for _, a := range c.Args {
			w.node(a)
		}
	}
}
