package model

import "strings"

// An AliasKind says which names an alias stands for.
type AliasKind int

const (
	// OneName stands for itself: "www.example.com".
	OneName AliasKind = iota
	// Head stands for all names that end so, with one label or more in the
	// place of the star: "*.example.com".
	Head
	// Tail stands for all names that begin so: "www.example.*".
	Tail
	// Regex stands for the names that a regular expression finds. Its text
	// has a tilde before the expression: "~^www[0-9]+\.example\.com$".
	Regex
)

// KindOfAlias tells what kind of alias a text is. The text is one that
// NGINX takes as a server name.
func KindOfAlias(text string) AliasKind {
	switch {
	case strings.HasPrefix(text, "~"):
		return Regex
	case strings.HasPrefix(text, "*."):
		return Head
	case strings.HasSuffix(text, ".*"):
		return Tail
	}
	return OneName
}

// NamePatterns are the aliases that stand for more than one name. They answer
// for names that no Name has, neither the name itself nor the wildcard above
// it: first the longest of Heads, then the longest of Tails, then the first of
// Regexes.
type NamePatterns struct {
	// Name of each is the alias, of Regexes with the text that Lua matches by
	// (pcre.Pattern.Text). Heads and Tails are in the order of the alphabet.
	Heads, Tails, Regexes []Name
}

// Empty tells whether there is none.
func (p NamePatterns) Empty() bool {
	return len(p.Heads)+len(p.Tails)+len(p.Regexes) == 0
}

// All are all of them.
func (p NamePatterns) All() []Name {
	all := make([]Name, 0, len(p.Heads)+len(p.Tails)+len(p.Regexes))
	return append(append(append(all, p.Heads...), p.Tails...), p.Regexes...)
}
