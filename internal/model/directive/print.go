package directive

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// Lines are the directives of a profile in nginx.conf.
func (l List) Lines(p model.Profile) []string {
	values := valuesOf(p)
	var lines []string
	for _, d := range l {
		if !d.Shared {
			lines = append(lines, d.lines(p, values)...)
		}
	}
	return lines
}

// SharedLines are the directives of the http block that some of the profiles need.
func (l List) SharedLines(profiles []model.Profile) []string {
	var lines []string
	for _, d := range l {
		var own []string
		for _, p := range profiles {
			if d.Shared {
				own = append(own, d.lines(p, valuesOf(p))...)
			}
		}
		slices.Sort(own)
		lines = append(lines, slices.Compact(own)...)
	}
	return lines
}

// In is the list for an nginx.conf in a folder.
func (l List) In(folder string) List {
	list := slices.Clone(l)
	for i := range list {
		if list[i].Absolute {
			list[i].folder = folder + "/"
		}
	}
	return list
}

// Texts are the values of a profile as in nginx.conf, by directive without the protocol's
// prefix. Those that nginx.conf does not have are absent.
func (l List) Texts(p model.Profile) map[string]string {
	values, texts := valuesOf(p), map[string]string{}
	for _, d := range l {
		if d.prints(p, values) {
			texts[d.Name] = d.printed(p, values)
		}
	}
	return texts
}

// Files are the names of the files of a profile, below the run directory.
func (l List) Files(p model.Profile) []string {
	var names []string
	for _, d := range l {
		if v := p.Get(d.Name); d.Kind == File && v.Text != "" {
			names = append(names, d.text(v))
		}
	}
	return names
}

// lines are the directive in nginx.conf, none if the profile's protocol does not have it.
func (d Directive) lines(p model.Profile, values map[string]model.ProfileValue) []string {
	if !d.prints(p, values) {
		return nil
	}
	if d.Kind.isStatuses() {
		lines := []string{"error_page " + d.printed(p, values) + " @error_page;"}
		if d.Kind == Statuses {
			lines = append([]string{p.Protocol.Prefix() + "intercept_errors on;"}, lines...)
		}
		return lines
	}
	if d.Kind == RequestLimit || d.Kind == ConnectionLimit {
		switch zone := values[d.Name].Text; {
		case d.isIn(d.given.Zones, zone):
			return nil
		case d.zones != nil && !d.isIn(*d.zones, zone):
			return []string{closed}
		}
	}
	name := cmp.Or(d.As, d.Name)
	if !d.Plain {
		name = p.Protocol.Prefix() + name
	}
	if d.Yields && slices.Contains(d.given.Names, name) {
		return nil
	}
	return []string{name + " " + d.folder + d.printed(p, values) + ";"}
}

// prints reports whether nginx.conf has the directive for a profile.
func (d Directive) prints(p model.Profile, values map[string]model.ProfileValue) bool {
	v := values[d.Name]
	if len(d.Only) > 0 && !slices.Contains(d.Only, p.Protocol) {
		return false
	}
	if d.TLS && !p.TLS || (d.TLS || d.Omits) && v.Number == 0 && v.Text == "" {
		return false
	}
	return v.Text != "" || !d.Kind.isText()
}

// printed is the value of the directive.
func (d Directive) printed(p model.Profile, values map[string]model.ProfileValue) string {
	v := values[d.Name]
	v.Number &^= d.Lacks[p.Protocol]
	text := d.text(v)
	if d.Times != "" {
		text += " " + Bytes(values[d.Times].Number)
	}
	return text
}

// isText reports whether values are texts, which are absent if they are empty.
func (k Kind) isText() bool {
	return k.isStatuses() || k == File || k == Ordered || k == Listed || k == RequestLimit || k == ConnectionLimit || k == Variable
}

func (k Kind) isStatuses() bool { return k == Statuses || k == OwnStatuses }

func (d Directive) text(v model.ProfileValue) string {
	n := v.Number
	switch d.Kind {
	case Ordered:
		return cmp.Or(d.words(v.Text, ":"), "none")
	case Listed:
		return cmp.Or(d.words(v.Text, " "), "none")
	case RequestLimit, ConnectionLimit:
		return cmp.Or(d.limitText(v.Text), "none")
	case Variable:
		return "$" + d.Variable
	case Statuses, OwnStatuses:
		return cmp.Or(strings.ReplaceAll(v.Text, ",", " "), "none")
	case File:
		if v.Text == "" {
			return "none"
		}
		return Files + "/" + v.Text
	case OnOff:
		if n != 0 {
			return "on"
		}
		return "off"
	case Size:
		return inUnits(n, "gmk")
	case Memory:
		return Bytes(n)
	case Seconds:
		return strconv.FormatInt(n, 10) + "s"
	case Set:
		return cmp.Or(model.Members(n, d.Words), "off")
	case Choice:
		return d.Words[n]
	}
	return strconv.FormatInt(n, 10)
}

// words are those of a list of indexes.
func (d Directive) words(indexes, separator string) string {
	if indexes == "" {
		return ""
	}
	var list []string
	for index := range strings.SplitSeq(indexes, ",") {
		i, err := strconv.Atoi(index)
		if err != nil {
			panic("directive: " + d.Name + " with the value " + indexes)
		}
		list = append(list, d.Words[i])
	}
	return strings.Join(list, separator)
}

// Declaration declares a variable of NGINX that Lua may set, and that has a value until
// then, which is written as in nginx.conf.
//
// Only a map's value can have variables. But each map takes 1.6 MB of zeros for its hash
// tables while NGINX reads its configuration, so others are declared by split_clients.
func Declaration(name, value string) string {
	form := `split_clients "" $%s { * %s; }`
	if strings.Contains(value, "$") {
		form = `map "" $%s { default %s; }`
	}
	return fmt.Sprintf(form, name, cmp.Or(value, `""`))
}

// Bytes writes a size of memory in the largest unit that gives a whole number. NGINX takes
// gigabytes as sizes of files alone.
func Bytes(n int64) string { return inUnits(n, "mk") }

func inUnits(n int64, units string) string {
	shift := map[rune]uint{'g': 30, 'm': 20, 'k': 10}
	for _, unit := range units {
		if whole := n >> shift[unit]; whole > 0 && whole<<shift[unit] == n {
			return strconv.FormatInt(whole, 10) + string(unit)
		}
	}
	return strconv.FormatInt(n, 10)
}
