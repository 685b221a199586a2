package modsecurity

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/pcre"
)

// operators are those that compare. None reads a file, runs a program or asks a server.
var operators = strings.Fields(`beginsWith contains containsWord detectSQLi detectXSS endsWith eq ge gt ipMatch le lt noMatch pm rx rxGlobal
	streq strmatch unconditionalMatch validateByteRange validateUrlEncoding validateUtf8Encoding verifyCC verifySSN within`)

// withPatterns are the operators whose argument is a regular expression.
var withPatterns = []string{"rx", "rxGlobal", "verifyCC", "verifySSN"}

// operator writes the operator with its name, also where the text leaves it out.
func operator(p *parser, text string) (string, error) {
	rest, negated := strings.CutPrefix(strings.TrimLeft(text, " \t"), "!")
	rest = strings.TrimLeft(rest, " \t")
	name, argument := "rx", rest
	if named, is := strings.CutPrefix(rest, "@"); is {
		name, argument, _ = strings.Cut(named, " ")
	}
	i := slices.IndexFunc(operators, func(known string) bool { return strings.EqualFold(known, name) })
	if i < 0 {
		return "", fmt.Errorf("the operator @%s is not allowed", name)
	}
	name, argument = operators[i], strings.TrimSpace(argument)
	if strings.HasSuffix(argument, `\`) || strings.Contains(argument, `\\"`) {
		return "", errors.New("the argument of an operator must not end with a backslash, or have two before a quote")
	}
	if err := macros(argument); err != nil {
		return "", err
	}
	if slices.Contains(withPatterns, name) {
		if err := p.pattern(strings.ReplaceAll(argument, `\"`, `"`)); err != nil {
			return "", err
		}
	}
	if argument != "" {
		argument = " " + argument
	}
	if negated {
		name = "!@" + name
	} else {
		name = "@" + name
	}
	return `"` + name + argument + `"`, nil
}

// pattern bounds the memory of regular expressions, which each location takes.
func (p *parser) pattern(text string) error {
	compiled, err := pcre.Compile(text, pcre.Options{})
	if err != nil {
		return fmt.Errorf("the regular expression is invalid: %w", err)
	}
	if p.patterns += compiled.Size(); p.patterns > maxPatterns {
		return fmt.Errorf("the regular expressions take more than %d bytes", maxPatterns)
	}
	return nil
}

// actionForms are the actions with the form of their values. Those with an empty form have
// none. IDs of the core rules are not allowed: by them, they are removed.
var actionForms = map[string]*regexp.Regexp{
	"id":    regexp.MustCompile(`^[0-9]{1,10}$`),
	"phase": regexp.MustCompile(`^([1-5]|request|response|logging)$`),
	"msg":   anything, "logdata": anything, "tag": anything, "rev": anything, "ver": anything,
	"severity": regexp.MustCompile(`^[A-Za-z0-9]{1,20}$`), "maturity": digit, "accuracy": digit,
	"t":   regexp.MustCompile(`^[A-Za-z0-9]{1,40}$`),
	"log": nil, "nolog": nil, "auditlog": nil, "noauditlog": nil,
	"deny": nil, "drop": nil, "block": nil, "pass": nil, "chain": nil, "capture": nil, "multiMatch": nil,
	"allow":     regexp.MustCompile(`^(phase|request)?$`),
	"status":    regexp.MustCompile(`^[345][0-9][0-9]$`),
	"redirect":  regexp.MustCompile(`^(https?:/)?/[^\s]{0,500}$`),
	"skip":      regexp.MustCompile(`^[0-9]{1,3}$`),
	"skipAfter": regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`),
	"setvar":    regexp.MustCompile(`^!?(?i:tx)\.[A-Za-z0-9_.%{}-]{1,200}(=.*)?$`),
	"ctl": regexp.MustCompile(`^(?:ruleEngine=(?:On|Off|DetectionOnly)|requestBodyAccess=(?:On|Off)|requestBodyProcessor=(?:JSON|XML|URLENCODED|MULTIPART)|` +
		`forceRequestBodyVariable=(?:On|Off)|auditEngine=(?:On|Off|RelevantOnly)|auditLogParts=[+-]?[A-KZ]{1,12}|` +
		`ruleRemoveBy(?:Id=[0-9-]{1,21}|Tag=[A-Za-z0-9_./-]{1,100})|` +
		`ruleRemoveTargetBy(?:Id=[0-9]{1,10}|Tag=[A-Za-z0-9_./-]{1,100});[A-Z_]{1,40}(?::[A-Za-z0-9_.@*-]{1,100})?)$`),
}

var (
	anything = regexp.MustCompile(`^.{0,500}$`)
	digit    = regexp.MustCompile(`^[0-9]$`)
)

// actions are those of a rule, with commas between them. Values with commas are in single
// quotes.
func actions(_ *parser, text string) (string, error) {
	if strings.ContainsAny(text, `"\`) {
		return "", errors.New("actions must not have double quotes or backslashes")
	}
	var list []string
	for rest := strings.TrimSpace(text); rest != ""; {
		var one string
		one, rest = cutAction(rest)
		written, err := action(one)
		if err != nil {
			return "", err
		}
		list = append(list, written)
	}
	if len(list) == 0 {
		return "", errors.New("there must be an action")
	}
	return quoted(strings.Join(list, ",")), nil
}

// cutAction cuts the first of a list.
func cutAction(text string) (first, rest string) {
	inQuote := false
	for i := range len(text) {
		switch {
		case text[i] == '\'':
			inQuote = !inQuote
		case text[i] == ',' && !inQuote:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

func action(text string) (string, error) {
	name, value, has := strings.Cut(strings.TrimSpace(text), ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	canonical, form, known := actionForm(name)
	if !known {
		return "", fmt.Errorf("the action %s is not allowed", name)
	}
	if !has {
		if form != nil && canonical != "allow" {
			return "", fmt.Errorf("the action %s must have a value", canonical)
		}
		return canonical, nil
	}
	mark := ""
	if len(value) > 1 && value[0] == '\'' && value[len(value)-1] == '\'' {
		mark, value = "'", value[1:len(value)-1]
	}
	if strings.Contains(value, "'") || mark == "" && strings.ContainsAny(value, " \t,") {
		return "", fmt.Errorf("the value of the action %s must be in single quotes, and have none", canonical)
	}
	if form == nil || !form.MatchString(value) {
		return "", fmt.Errorf("the action %s can't have the value %q", canonical, value)
	}
	if err := macros(value); err != nil {
		return "", err
	}
	if canonical == "id" && ofCoreRules(value) {
		return "", fmt.Errorf("the ID %s is one of the core rules", value)
	}
	return canonical + ":" + mark + value + mark, nil
}

func actionForm(name string) (canonical string, form *regexp.Regexp, known bool) {
	for canonical, form := range actionForms {
		if strings.EqualFold(canonical, name) {
			return canonical, form, true
		}
	}
	return "", nil, false
}

// ofCoreRules reports whether an ID is among those that withoutCoreRules removes.
func ofCoreRules(id string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	return err != nil || n >= 901000 && n <= 999999 || n >= 9001000 && n <= 9009999
}
