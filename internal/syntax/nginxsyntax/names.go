package nginxsyntax

import (
	"regexp"
	"slices"
	"strings"
)

// Names are what a text for the http block defines for tenants' snippets, sorted and without
// duplicates.
type Names struct {
	// Variables are in lower case, without a dollar sign, as NGINX compares them.
	Variables []string
	// RequestZones are those of limit_req_zone, ConnectionZones those of limit_conn_zone.
	RequestZones, ConnectionZones []string
}

// maxText bounds what is read, in bytes. Names in a longer text are not found.
const maxText = 1 << 20

// own is what the names of Headgate's variables and zones begin with.
const own = "hg_"

var plain = regexp.MustCompile(`^[A-Za-z0-9_]{1,100}$`)

// Defined are the names that a text for the http block defines. Those that only a server of its own
// has are not among them. What NGINX would not take, NGINX reports: the names are those of what comes
// before the first error.
func Defined(text string) Names {
	var n Names
	if len(text) > maxText {
		return n
	}
	http, _ := Parse(text)
	for _, d := range http {
		switch d.Name {
		case "limit_req_zone":
			n.RequestZones = appendZone(n.RequestZones, d.Args)
		case "limit_conn_zone":
			n.ConnectionZones = appendZone(n.ConnectionZones, d.Args)
		case "map", "split_clients", "geo":
			// The last word is the variable, the one before what it depends on.
			if len(d.Args) > 0 {
				n.Variables = appendVariable(n.Variables, d.Args[len(d.Args)-1])
			}
		case "geoip2":
			for _, field := range d.Block {
				n.Variables = appendVariable(n.Variables, field.Name)
			}
		}
	}
	for _, list := range []*[]string{&n.Variables, &n.RequestZones, &n.ConnectionZones} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}

// appendZone adds the name in zone=NAME:SIZE: of several, that of the last one, and none in the first
// argument, which is the key.
func appendZone(list, args []string) []string {
	name := ""
	for _, a := range args[min(1, len(args)):] {
		if zone, is := strings.CutPrefix(a, "zone="); is {
			name, _, _ = strings.Cut(zone, ":")
		}
	}
	return appendName(list, name)
}

func appendVariable(list []string, word string) []string {
	if name, is := strings.CutPrefix(strings.ToLower(word), "$"); is {
		return appendName(list, name)
	}
	return list
}

func appendName(list []string, name string) []string {
	if !plain.MatchString(name) || strings.HasPrefix(name, own) {
		return list
	}
	return append(list, name)
}
