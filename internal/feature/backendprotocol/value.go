package backendprotocol

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/syntax/template"
)

const (
	scriptNameVariable  = "fastcgi_script_name"
	pathInfoVariable    = "fastcgi_path_info"
	rootVariable        = "document_root"
	realRootVariable    = "realpath_root"
	fileNameVariable    = "request_filename"
	documentURIVariable = "document_uri"
	defaultRoot         = "/usr/share/nginx/html"
)

// Bounds of a value, with what $document_root stands for.
const (
	maxText   = 2048
	maxPieces = 32
)

// further are the variables of values besides those of all templates. fastcgi.lua has those
// that resolve leaves.
func further() []string {
	return []string{
		scriptNameVariable, pathInfoVariable, rootVariable, realRootVariable, fileNameVariable, documentURIVariable,
		"https", "server_name", "server_protocol", "server_addr", "content_type", "content_length", "remote_port",
	}
}

// A resolver replaces variables that other parameters, or the index, determine.
type resolver struct {
	root  template.Template
	index string
}

func (r resolver) parse(text string) (template.Template, error) {
	t, err := template.ParseWith(text, further())
	if err != nil {
		return nil, err
	}
	t = r.resolve(t)
	length := 0
	for _, piece := range t {
		length += len(piece.Literal)
	}
	if len(t) > maxPieces || length > maxText {
		return nil, fmt.Errorf("is too long: must have at most %d bytes and %d variables, with those of %s", maxText, maxPieces/2, documentRootName)
	}
	return t, nil
}

// documentRoot is the value of DOCUMENT_ROOT, in which the variables that are made of it
// are the default.
func documentRoot(data map[string]string) (template.Template, error) {
	root := template.Template{{Literal: defaultRoot}}
	text := strings.TrimSpace(data[documentRootName])
	if text == "" {
		return root, nil
	}
	return resolver{root: root}.parse(text)
}

func (r resolver) resolve(t template.Template) template.Template {
	resolved := template.Template{}
	for _, piece := range t {
		switch piece.Variable {
		case rootVariable, realRootVariable:
			resolved = append(resolved, r.root...)
		case fileNameVariable:
			resolved = append(append(resolved, r.root...), template.Piece{Variable: documentURIVariable})
		case scriptNameVariable:
			piece.Name = r.index
			resolved = append(resolved, piece)
		case pathInfoVariable:
			// Nothing splits the path: PHP itself looks for a script in it.
		default:
			resolved = append(resolved, piece)
		}
	}
	return resolved
}
