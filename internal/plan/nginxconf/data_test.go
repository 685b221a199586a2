package nginxconf

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// TemplateData is a table of what templates can read: the fields and methods of the data, and of
// types of this module that these have.
func TemplateData() string {
	var b strings.Builder
	b.WriteString("| type | field or method | type |\n| --- | --- | --- |\n")
	todo, known := []reflect.Type{reflect.TypeFor[document]()}, map[reflect.Type]bool{}
	for len(todo) > 0 {
		t := todo[0]
		todo = todo[1:]
		if known[t] {
			continue
		}
		known[t] = true
		for _, m := range membersOf(t) {
			fmt.Fprintf(&b, "| `%s` | `%s` | `%s` |\n", typeName(t), m.name, typeName(m.is))
			todo = append(todo, elementOf(m.is))
		}
	}
	return b.String()
}

type member struct {
	name string
	is   reflect.Type
}

// membersOf are what a template can name of a value: promoted ones too, none of other modules' types.
func membersOf(t reflect.Type) []member {
	var list []member
	if !strings.HasPrefix(t.PkgPath(), "github.com/headgate/") {
		return nil
	}
	if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() && !f.Anonymous {
				list = append(list, member{f.Name, f.Type})
			}
		}
	}
	for i := range t.NumMethod() {
		m := t.Method(i)
		if m.Type.NumOut() == 0 || m.Type.NumOut() > 2 {
			continue
		}
		var args []string
		for j := 1; j < m.Type.NumIn(); j++ {
			args = append(args, typeName(m.Type.In(j)))
		}
		list = append(list, member{strings.TrimSpace(m.Name + " " + strings.Join(args, " ")), m.Type.Out(0)})
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return list
}

// elementOf is the type of the elements of lists, and of what pointers lead to.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	return t
}

func typeName(t reflect.Type) string {
	return strings.NewReplacer("nginxconf.", "", "model.", "", "resource.", "", "directive.", "", "|", "").Replace(t.String())
}
