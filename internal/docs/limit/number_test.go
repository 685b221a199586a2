package limit

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A number is where in the code the number of a limit stands.
type number struct {
	unit unit
	// file is relative to the top folder.
	file string
	// where is the name of a constant of Go or Lua in the file, or else an expression that finds
	// the number by its only group.
	where string
}

// A unit says what a number counts.
type unit string

const (
	count        unit = "count"
	bytes        unit = "bytes"
	seconds      unit = "seconds"
	milliseconds unit = "milliseconds"
	kibibytes    unit = "kibibytes"
	megabytes    unit = "megabytes"
	percent      unit = "percent"
	duration     unit = "duration" // in nanoseconds, as time.Duration
	one          unit = "one"      // that is there, in words
)

var name = regexp.MustCompile(`^\w+$`)

// value reads the number from the code below a folder.
func (n number) value(top string) (float64, error) {
	file := filepath.Join(top, n.file)
	var known, own map[string]ast.Expr
	if strings.HasSuffix(file, ".go") {
		var err error
		if known, own, err = constantsOf(file); err != nil {
			return 0, err
		}
	}
	pattern := n.where
	if name.MatchString(n.where) {
		if own != nil {
			if own[n.where] == nil {
				return 0, fmt.Errorf("%s has no constant %s", n.file, n.where)
			}
			return evaluate(own[n.where], known)
		}
		pattern = `(?m)^(?:local |_M\.)` + n.where + ` = ([^-\n]+)`
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(pattern).FindAllSubmatch(content, -1)
	if len(found) != 1 {
		return 0, fmt.Errorf("%s has %d places like %s, want one", n.file, len(found), pattern)
	}
	if n.unit == one {
		return 1, nil
	}
	expression, err := parser.ParseExpr(strings.TrimSpace(string(found[0][1])))
	if err != nil {
		return 0, fmt.Errorf("read %s in %s: %w", n.where, n.file, err)
	}
	return evaluate(expression, known)
}

// constantsOf are the constants of a Go file, and those of its package.
func constantsOf(file string) (known, own map[string]ast.Expr, err error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if err != nil {
		return nil, nil, err
	}
	known, own = map[string]ast.Expr{}, map[string]ast.Expr{}
	for _, other := range files {
		if strings.HasSuffix(other, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), other, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			declared, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, id := range declared.Names {
				if i < len(declared.Values) {
					known[id.Name] = declared.Values[i]
					if other == file {
						own[id.Name] = declared.Values[i]
					}
				}
			}
			return true
		})
	}
	return known, own, nil
}

var durations = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// evaluate computes what constants are made of.
func evaluate(expression ast.Expr, known map[string]ast.Expr) (float64, error) {
	switch e := expression.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X, known)
	case *ast.BasicLit:
		return strconv.ParseFloat(strings.ReplaceAll(e.Value, "_", ""), 64)
	case *ast.Ident:
		if other, ok := known[e.Name]; ok {
			return evaluate(other, known)
		}
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok && of.Name == "time" {
			return float64(durations[e.Sel.Name]), nil
		}
	case *ast.BinaryExpr:
		x, err := evaluate(e.X, known)
		y, err2 := evaluate(e.Y, known)
		if err := errors.Join(err, err2); err != nil {
			return 0, err
		}
		switch e.Op {
		case token.ADD:
			return x + y, nil
		case token.MUL:
			return x * y, nil
		case token.SHL:
			return math.Ldexp(x, int(y)), nil
		}
	}
	return 0, errors.New("it is not a sum, product or shift of constants")
}

// String returns a number with its unit.
func (u unit) String(number float64) string {
	switch u {
	case seconds:
		return u.time(time.Duration(number * float64(time.Second)))
	case milliseconds:
		return u.time(time.Duration(number * float64(time.Millisecond)))
	case duration:
		return u.time(time.Duration(number))
	case percent:
		return fmt.Sprintf("%g %%", number)
	case kibibytes:
		return bytes.String(number * (1 << 10))
	case megabytes:
		return bytes.String(number * (1 << 20))
	case bytes:
		for _, b := range []struct {
			size float64
			name string
		}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if number >= b.size && math.Mod(number, b.size) == 0 {
				return fmt.Sprintf("%g %s", number/b.size, b.name)
			}
		}
		return thousands(number) + " bytes"
	}
	return thousands(number)
}

func (unit) time(d time.Duration) string {
	switch {
	case d >= 24*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= 2*time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d >= time.Second:
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return fmt.Sprintf("%g ms", float64(d)/float64(time.Millisecond))
}

// thousands writes a whole number with commas.
func thousands(number float64) string {
	digits := strconv.FormatFloat(number, 'f', -1, 64)
	for i := len(digits) - 3; i > 0 && !strings.Contains(digits, "."); i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
