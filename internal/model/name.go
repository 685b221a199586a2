package model

import "strings"

// An AliasKind says which names an alias stands for.
type AliasKind int

const (
	// OneName stands for itself: "www.example.com".
	OneName AliasKind = iota
	// LeadingWildcard stands for all names that end so, with one label or more instead
	// of the star: "*.example.com".
	LeadingWildcard
	// TrailingWildcard stands for all names that begin so: "www.example.*".
	TrailingWildcard
	// Regex stands for the names that a regular expression finds. Its text
	// has a tilde before the expression: "~^www[0-9]+\.example\.com$".
	Regex
)

// KindOfAlias returns the kind of an alias that NGINX accepts as a server name.
func KindOfAlias(text string) AliasKind {
	switch {
	case strings.HasPrefix(text, "~"):
		return Regex
	case strings.HasPrefix(text, "*."):
		return LeadingWildcard
	case strings.HasSuffix(text, ".*"):
		return TrailingWildcard
	}
	return OneName
}

// WildcardAbove returns the wildcard that a name is below: the * stands for one label of
// letters, digits, hyphens and underscores.
func WildcardAbove(name string) (wildcard string, ok bool) {
	label, rest, ok := strings.Cut(name, ".")
	if !ok || label == "" || strings.ContainsFunc(label, func(c rune) bool { return !isWord(c) }) {
		return "", false
	}
	return "*." + rest, true
}

func isWord(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// NamePatterns are the aliases that stand for more than one name. They answer
// for names that no Name has, neither the name itself nor the wildcard above
// it: first the longest of LeadingWildcards, then the longest of TrailingWildcards, then the first of
// Regexes.
type NamePatterns struct {
	// Name of each is the alias, of Regexes with the text that Lua matches by
	// (pcre.Pattern.Text). LeadingWildcards and TrailingWildcards are in the order of the alphabet.
	LeadingWildcards, TrailingWildcards, Regexes []Name
}

// Empty reports whether there are none.
func (p NamePatterns) Empty() bool {
	return len(p.LeadingWildcards)+len(p.TrailingWildcards)+len(p.Regexes) == 0
}
