// Package admintext finds names in the text that an administrator adds to nginx.conf: those
// that snippets of tenants may use. It knows the language of NGINX, and no tenant.
package admintext

import (
	"io"
	"regexp"
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// Names are what a text for the http block defines, sorted and without duplicates.
type Names struct {
	// Variables are in lower case, without a dollar sign, as NGINX compares them.
	Variables []string
	// RequestZones are those of limit_req_zone, ConnectionZones those of limit_conn_zone.
	RequestZones, ConnectionZones []string
}

// maxText bounds what is read. Names in a longer text are not found.
const maxText = 1 << 20

// own is what the names of Headgate's variables begin with.
const own = "hg_"

var name = regexp.MustCompile(`^[A-Za-z0-9_]{1,100}$`)

// Read reads a text. What NGINX would not take, NGINX reports: the names are those of what
// can be read.
func Read(text string) Names {
	var n Names
	if strings.TrimSpace(text) == "" || len(text) > maxText {
		return n
	}
	payload, err := crossplane.Parse("http-snippet", &crossplane.ParseOptions{
		Open: func(string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("http {" + text + "\n}")), nil
		},
		SingleFile:                true,
		LexOptions:                crossplane.LexOptions{Lexers: []crossplane.RegisterLexer{(&crossplane.Lua{}).RegisterLexer()}},
		SkipDirectiveContextCheck: true, SkipDirectiveArgsCheck: true,
	})
	if err != nil || len(payload.Config) != 1 {
		return n
	}
	for _, http := range payload.Config[0].Parsed {
		for _, d := range http.Block {
			n.add(d)
		}
	}
	for _, list := range []*[]string{&n.Variables, &n.RequestZones, &n.ConnectionZones} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}

func (n *Names) add(d *crossplane.Directive) {
	switch d.Directive {
	case "map", "geo", "split_clients":
		// The last word is the variable, the one before what it depends on.
		if len(d.Args) > 0 {
			n.define(d.Args[len(d.Args)-1])
		}
	case "geoip2":
		for _, inner := range d.Block {
			n.define(inner.Directive)
		}
	case "limit_req_zone":
		n.RequestZones = append(n.RequestZones, zonesOf(d)...)
	case "limit_conn_zone":
		n.ConnectionZones = append(n.ConnectionZones, zonesOf(d)...)
	}
}

func (n *Names) define(argument string) {
	variable, is := strings.CutPrefix(strings.ToLower(argument), "$")
	if is && name.MatchString(variable) && !strings.HasPrefix(variable, own) {
		n.Variables = append(n.Variables, variable)
	}
}

// zonesOf are the names in "zone=NAME:SIZE".
func zonesOf(d *crossplane.Directive) []string {
	for _, argument := range d.Args {
		if zone, is := strings.CutPrefix(argument, "zone="); is {
			if zone, _, _ = strings.Cut(zone, ":"); name.MatchString(zone) && !strings.HasPrefix(zone, own) {
				return []string{zone}
			}
		}
	}
	return nil
}
