package main

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// A name is an identifier and where it stands.
type name struct {
	at   int
	text string
}

// parts are the prose of a file and the names in its code. The prose is as long
// as the text; code is NUL bytes in it, so that no phrase goes across code, and
// white space stays, so that one goes across lines of a comment.
func parts(path, text string) (prose string, names []name) {
	switch filepath.Ext(path) {
	case ".go":
		return goParts(text)
	case ".lua":
		return luaParts(text)
	}
	return text, nil
}

func goParts(text string) (string, []name) {
	prose := []byte(hideCode(text))
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	var names []name
	for {
		pos, tok, literal := s.Scan()
		at := file.Offset(pos)
		switch tok {
		case token.EOF:
			return string(prose), names
		case token.IDENT:
			names = append(names, name{at, literal})
		case token.COMMENT, token.STRING:
			copy(prose[at:], show(literal, "//"))
		}
	}
}

// luaTokens are comments, strings and identifiers. Long brackets have level 0
// in this code base, but for those with one equals sign.
var luaTokens = regexp.MustCompile(`(?s)--\[(?:=?)\[.*?\](?:=?)\]|--[^\n]*|\[\[.*?\]\]|\[=\[.*?\]=\]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_]\w*`)

func luaParts(text string) (string, []name) {
	prose := []byte(hideCode(text))
	var names []name
	for _, at := range luaTokens.FindAllStringIndex(text, -1) {
		literal := text[at[0]:at[1]]
		if strings.ContainsAny(literal[:1], `-["'`) {
			copy(prose[at[0]:], show(literal, "--"))
		} else {
			names = append(names, name{at[0], literal})
		}
	}
	return string(prose), names
}

// hideCode replaces each byte but white space by NUL.
func hideCode(text string) string {
	hidden := []byte(text)
	for i, b := range hidden {
		if b != ' ' && b != '\t' && b != '\n' {
			hidden[i] = 0
		}
	}
	return string(hidden)
}

// show is a comment or string with its mark as spaces.
func show(literal, mark string) string {
	if rest, ok := strings.CutPrefix(literal, mark); ok {
		return strings.Repeat(" ", len(mark)) + rest
	}
	return literal
}

// inProse are names that stand in prose: they have capitals inside or an
// underscore. Others are words.
var inProse = regexp.MustCompile(`\b(?:\w*[a-z]+[A-Z]\w*|[A-Za-z]+_\w+)\b`)

func namesIn(prose string) []name {
	var names []name
	for _, at := range inProse.FindAllStringIndex(prose, -1) {
		names = append(names, name{at[0], prose[at[0]:at[1]]})
	}
	return names
}

var humps = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// splitName is the words of a name: "max tries" of maxTries and MAX_TRIES.
func splitName(text string) string {
	text = humps.ReplaceAllString(text, "$1$3 $2$4")
	return strings.ToLower(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '_' || r == ' ' }), " "))
}
