package wire

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

const (
	// Everyone is the namespace of what the edges of all groups get.
	Everyone = ""
	// NoGroup is that of what only edges for all namespaces get, unless a unit that another one gets needs it.
	NoGroup = "-"
)

// Namespace is that of a unit: of its Ingresses' host or name, of its Service, or of its stream's Service; [Everyone],
// or [NoGroup].
func Namespace(b unit.Built) string {
	switch m := b.Model.(type) {
	case nil, model.Globals, model.Certificate:
		return Everyone
	case model.Host:
		return m.Namespace
	case model.Name:
		return m.Namespace
	case model.Stream:
		return m.Namespace
	case model.Backend:
		namespace, _, _ := strings.Cut(m.Key, "/")
		if namespace == model.NoNamespace {
			return NoGroup
		}
		return namespace
	case model.OCSPResponse, model.NamePatterns:
		// Patterns of all namespaces are one unit.
		return NoGroup
	}
	panic(fmt.Sprintf("wire: whose a %T is", b.Model))
}

// needs are the units that serve one, of other namespaces than its own.
func needs(b unit.Built, text []byte) (list []unit.Key) {
	switch b.Model.(type) {
	case model.Host, model.Stream:
		own := Namespace(b) + "/"
		for key := range backends(text) {
			if !strings.HasPrefix(key, own) {
				list = append(list, unit.Backend.Key(key))
			}
		}
	case model.Name:
		for _, c := range b.Certificates {
			list = append(list, unit.OCSPResponse.Key(c.Hash))
		}
	}
	return list
}

// backends are the texts in JSON that have the form of a backend's key, each once: the values of policies, which name
// backends too, are known to their features alone. Other texts of that form name nothing.
func backends(text []byte) map[string]struct{} {
	found := map[string]struct{}{}
	for {
		begin := bytes.IndexByte(text, '"')
		if begin < 0 {
			return found
		}
		text = text[begin+1:]
		end := 0
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return found
		}
		if value := text[:end]; bytes.Count(value, []byte("/")) == 2 && isKey(string(value)) {
			found[string(value)] = struct{}{}
		}
		text = text[end+1:]
	}
}

// isKey reports whether a text with two slashes can be the key of a backend, NAMESPACE/NAME/PORT.
func isKey(text string) bool {
	return !strings.HasSuffix(text, "/") && !strings.Contains(text, "//") && !strings.ContainsAny(text, "\\ ")
}
