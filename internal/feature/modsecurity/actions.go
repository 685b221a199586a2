package modsecurity

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An actionForm is the form of an action's values. All that have the same form are written in
// the same way, with single quotes or without, however the tenant wrote them.
type actionForm struct {
	form   *regexp.Regexp
	quotes bool
}

var (
	bare = actionForm{}
	// freeText has nothing that could end it, and percent signs only in variables.
	freeText = inQuotes(`[^'"\\]{1,500}`)
)

func inQuotes(expression string) actionForm {
	return actionForm{regexp.MustCompile(`^(?:` + expression + `)$`), true}
}

func withoutQuotes(expression string) actionForm {
	return actionForm{regexp.MustCompile(`^(?:` + expression + `)$`), false}
}

// actionForms are the actions with the forms of their values. IDs of the core rules are not
// allowed: by them, they are removed.
var actionForms = map[string]actionForm{
	"id":    withoutQuotes(`[0-9]{1,10}`),
	"phase": withoutQuotes(`[1-5]|request|response|logging`),
	"msg":   freeText, "logdata": freeText, "tag": freeText,
	"severity": withoutQuotes(`[0-7]|EMERGENCY|ALERT|CRITICAL|ERROR|WARNING|NOTICE|INFO|DEBUG`),
	"t": withoutQuotes(`(?i:base64Decode|base64DecodeExt|base64Encode|cmdLine|compressWhitespace|cssDecode|escapeSeqDecode|hexDecode|hexEncode|` +
		`htmlEntityDecode|jsDecode|length|lowercase|md5|none|normali[sz]ePath(?:Win)?|parity(?:Even|Odd|Zero)7bit|removeComments(?:Char)?|removeNulls|` +
		`removeWhitespace|replaceComments|replaceNulls|sha1|sqlHexDecode|trim(?:Left|Right)?|uppercase|urlDecode(?:Uni)?|urlEncode|utf8toUnicode)`),
	"log": bare, "nolog": bare, "auditlog": bare, "noauditlog": bare,
	"deny": bare, "drop": bare, "block": bare, "pass": bare, "chain": bare, "capture": bare, "multiMatch": bare,
	"allow":     withoutQuotes(`phase|request`),
	"status":    withoutQuotes(`[345][0-9][0-9]`),
	"redirect":  inQuotes(`(?:https?:/)?/[A-Za-z0-9_.~:/?@!$&()*+;=%{}-]{0,500}`),
	"skip":      withoutQuotes(`[0-9]{1,3}`),
	"skipAfter": withoutQuotes(`[A-Za-z0-9_.-]{1,100}`),
	"setvar":    inQuotes(`!(?i:tx)\.[A-Za-z0-9_.%{}-]{1,200}|(?i:tx)\.[A-Za-z0-9_.%{}-]{1,200}(?:=[A-Za-z0-9_.%{}+-]{1,200})?`),
	"ctl": withoutQuotes(`ruleEngine=(?:On|Off|DetectionOnly)|requestBodyAccess=(?:On|Off)|requestBodyProcessor=(?:JSON|XML|URLENCODED|MULTIPART)|` +
		`forceRequestBodyVariable=(?:On|Off)|auditEngine=(?:On|Off|RelevantOnly)|auditLogParts=[+-]?[A-KZ]{1,12}|` +
		`ruleRemoveBy(?:Id=[0-9]{1,10}(?:-[0-9]{1,10})?|Tag=[A-Za-z0-9_./-]{1,100})|` +
		`ruleRemoveTargetBy(?:Id=[0-9]{1,10}|Tag=[A-Za-z0-9_./-]{1,100});[A-Z_]{1,40}(?::[A-Za-z0-9_.@*-]{1,100})?`),
}

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
	canonical, form, known := actionNamed(name)
	if !known {
		return "", fmt.Errorf("the action %s is not allowed", name)
	}
	if !has {
		if form.form != nil && canonical != "allow" {
			return "", fmt.Errorf("the action %s must have a value", canonical)
		}
		return canonical, nil
	}
	if len(value) > 1 && value[0] == '\'' && value[len(value)-1] == '\'' {
		value = value[1 : len(value)-1]
	} else if strings.ContainsAny(value, " \t,'") {
		return "", fmt.Errorf("the value of the action %s must be in single quotes, and have none", canonical)
	}
	if form.form == nil || !form.form.MatchString(value) {
		return "", fmt.Errorf("the action %s can't have the value %q", canonical, value)
	}
	if err := macros(value); err != nil {
		return "", fmt.Errorf("the value of the action %s %w", canonical, err)
	}
	if canonical == "id" && ofCoreRules(value) {
		return "", fmt.Errorf("the ID %s is one of the core rules", value)
	}
	if form.quotes {
		value = "'" + value + "'"
	}
	return canonical + ":" + value, nil
}

func actionNamed(name string) (canonical string, form actionForm, known bool) {
	for canonical, form := range actionForms {
		if strings.EqualFold(canonical, name) {
			return canonical, form, true
		}
	}
	return "", actionForm{}, false
}

// ofCoreRules reports whether an ID is among those that withoutCoreRules removes.
func ofCoreRules(id string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	return err != nil || n >= 901000 && n <= 999999 || n >= 9001000 && n <= 9009999
}
