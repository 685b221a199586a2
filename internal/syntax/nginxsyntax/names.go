package nginxsyntax

import (
	"slices"
	"strings"
)

// Names are what the http block defines for other directives.
type Names struct {
	// LimitReq and LimitConn are the names of zones.
	LimitReq, LimitConn []string
	// Variables are without the dollar sign.
	Variables []string
	// Logs are the names of formats.
	Logs []string
}

// Defined are the names that lines of the http block define. Those that only a server of its own
// has are not among them.
func Defined(http []Directive) Names {
	var n Names
	for _, d := range http {
		switch d.Name {
		case "limit_req_zone":
			n.LimitReq = appendZone(n.LimitReq, d.Args)
		case "limit_conn_zone":
			n.LimitConn = appendZone(n.LimitConn, d.Args)
		case "map", "split_clients", "geo", "set":
			n.Variables = appendVariable(n.Variables, d)
		case "geoip2":
			for _, field := range d.Block {
				if name, is := strings.CutPrefix(field.Name, "$"); is {
					n.Variables = append(n.Variables, name)
				}
			}
		case "log_format":
			if len(d.Args) > 0 {
				n.Logs = append(n.Logs, d.Args[0])
			}
		}
	}
	for _, list := range []*[]string{&n.LimitReq, &n.LimitConn, &n.Variables, &n.Logs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}

// appendZone adds the name in zone=NAME:SIZE: of several, that of the last one, and none in the first
// argument, which is the key.
func appendZone(list, args []string) []string {
	name, found := "", false
	for _, a := range args[min(1, len(args)):] {
		if zone, is := strings.CutPrefix(a, "zone="); is {
			name, _, _ = strings.Cut(zone, ":")
			found = true
		}
	}
	if !found {
		return list
	}
	return append(list, name)
}

// appendVariable adds the variable that a directive defines: the last one before a block, the first
// one of set.
func appendVariable(list []string, d Directive) []string {
	if len(d.Args) == 0 {
		return list
	}
	word := d.Args[len(d.Args)-1]
	if d.Name == "set" {
		word = d.Args[0]
	}
	name, is := strings.CutPrefix(word, "$")
	if !is {
		return list
	}
	return append(list, name)
}
