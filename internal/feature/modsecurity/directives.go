package modsecurity

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A checker checks an argument, and writes it as it stands in the file.
type checker func(p *parser, text string) (written string, err error)

// An allowedDirective is a directive that tenants may write.
type allowedDirective struct {
	name string
	// least is how many arguments it must have, and more is set where the last one may be
	// repeated.
	least     int
	more      bool
	arguments []checker
}

// allowed has the directives that tenants may write.
var allowed = sync.OnceValue(func() []allowedDirective {
	one := func(name string, check checker) allowedDirective {
		return allowedDirective{name: name, least: 1, arguments: []checker{check}}
	}
	many := func(name string, check checker) allowedDirective {
		return allowedDirective{name: name, least: 1, more: true, arguments: []checker{check}}
	}
	onOff := words("On", "Off")
	return []allowedDirective{
		{name: "SecRule", least: 2, arguments: []checker{variables, operator, actions}},
		one("SecAction", actions),
		one("SecDefaultAction", actions),
		one("SecMarker", matching(`^[A-Za-z0-9_.-]{1,100}$`)),
		one("SecRuleEngine", words("On", "Off", "DetectionOnly")),
		many("SecRuleRemoveById", matching(`^[0-9]{1,10}(-[0-9]{1,10})?$`)),
		one("SecRuleRemoveByTag", plain), one("SecRuleRemoveByMsg", plain),
		{name: "SecRuleUpdateTargetById", least: 2, arguments: []checker{matching(`^[0-9]{1,10}$`), targets}},
		{name: "SecRuleUpdateTargetByTag", least: 2, arguments: []checker{plain, targets}},
		{name: "SecRuleUpdateTargetByMsg", least: 2, arguments: []checker{plain, targets}},
		{name: "SecRuleUpdateActionById", least: 2, arguments: []checker{matching(`^[0-9]{1,10}$`), actions}},
		one("SecRequestBodyAccess", onOff), one("SecResponseBodyAccess", onOff),
		one("SecRequestBodyLimit", number(maxRequestBody)), one("SecRequestBodyNoFilesLimit", number(maxRequestBody)), one("SecResponseBodyLimit", number(8<<20)),
		one("SecRequestBodyLimitAction", words("Reject", "ProcessPartial")), one("SecResponseBodyLimitAction", words("Reject", "ProcessPartial")),
		one("SecRequestBodyJsonDepthLimit", number(10000)), one("SecArgumentsLimit", number(maxArguments)), one("SecUploadFileLimit", number(1000)),
		many("SecResponseBodyMimeType", matching(`^[A-Za-z0-9./+*-]{1,100}$`)),
		{name: "SecResponseBodyMimeTypesClear", arguments: nil},
		one("SecPcreMatchLimit", number(maxMatch)), one("SecPcreMatchLimitRecursion", number(maxMatch)),
		one("SecArgumentSeparator", matching(`^[&;|,]$`)), one("SecCookieFormat", words("0", "1")),
		one("SecAuditEngine", words("On", "Off", "RelevantOnly")), one("SecAuditLogParts", matching(`^[A-KZ]{1,12}$`)),
		one("SecAuditLogRelevantStatus", statuses), one("SecAuditLogFormat", words("JSON")),
		one("SecAuditLogType", words("Serial")), one("SecAuditLog", words("/dev/stdout", "/dev/stderr", "/dev/null")),
		// What these could switch on writes files, reads them or asks a server.
		one("SecUploadKeepFiles", words("Off")), one("SecXmlExternalEntity", words("Off")), one("SecStatusEngine", words("Off")),
	}
})

func find(list []allowedDirective, name string) (allowedDirective, bool) {
	i := slices.IndexFunc(list, func(d allowedDirective) bool { return strings.EqualFold(d.name, name) })
	if i < 0 {
		return allowedDirective{}, false
	}
	return list[i], true
}

// words takes one of a few words.
func words(list ...string) checker {
	return func(_ *parser, text string) (string, error) {
		for _, word := range list {
			if strings.EqualFold(word, text) {
				return word, nil
			}
		}
		return "", fmt.Errorf("must be %s", strings.Join(list, " or "))
	}
}

// number takes a number from 1 on: ModSecurity takes 0 for no limit.
func number(most int) checker {
	return func(_ *parser, text string) (string, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return "", fmt.Errorf("must be a number from 1 to %d", most)
		}
		return strconv.Itoa(n), nil
	}
}

// matching takes what an expression matches, which has neither quotes nor spaces.
func matching(expression string) checker {
	form := regexp.MustCompile(expression)
	return func(_ *parser, text string) (string, error) {
		if !form.MatchString(text) {
			return "", errors.New("an argument has another form than is allowed")
		}
		return text, nil
	}
}

// statuses takes a regular expression for statuses.
func statuses(_ *parser, text string) (string, error) {
	written, err := matching(`^[0-9()?:!|^$\[\].-]{1,100}$`)(nil, text)
	return quoted(written), err
}

// plain takes a tag or a message.
func plain(_ *parser, text string) (string, error) {
	written, err := matching(`^[A-Za-z0-9_.,:;()/+= -]{1,200}$`)(nil, text)
	return quoted(written), err
}

// quoted writes text that has no quotes, and does not end with a backslash.
func quoted(text string) string { return `"` + text + `"` }

var (
	// variableForm has regular expressions without repetition, whose cost nothing else bounds.
	variableForm = regexp.MustCompile(`^([!&]?)([A-Za-z0-9_]+)(?::([A-Za-z0-9_.-]{1,100}|/[A-Za-z0-9_.^$\[\]-]{1,100}/|/\*|//@\*))?$`)
	macro        = regexp.MustCompile(`^%\{([A-Za-z0-9_]+)(?:[.:][A-Za-z0-9_.-]+)?\}`)
)

// readable are the variables that rules may read. They are those of the request and the
// response: none of the environment, of files, or of what is kept for other requests.
var readable = strings.Fields(`ARGS ARGS_COMBINED_SIZE ARGS_GET ARGS_GET_NAMES ARGS_NAMES ARGS_POST ARGS_POST_NAMES AUTH_TYPE DURATION
	FILES FILES_COMBINED_SIZE FILES_NAMES FILES_SIZES FULL_REQUEST FULL_REQUEST_LENGTH HIGHEST_SEVERITY INBOUND_DATA_ERROR MATCHED_VAR
	MATCHED_VARS MATCHED_VARS_NAMES MATCHED_VAR_NAME MULTIPART_BOUNDARY_QUOTED MULTIPART_BOUNDARY_WHITESPACE MULTIPART_CRLF_LF_LINES
	MULTIPART_DATA_AFTER MULTIPART_DATA_BEFORE MULTIPART_FILENAME MULTIPART_FILE_LIMIT_EXCEEDED MULTIPART_HEADER_FOLDING
	MULTIPART_INVALID_HEADER_FOLDING MULTIPART_INVALID_PART MULTIPART_INVALID_QUOTING MULTIPART_LF_LINE MULTIPART_MISSING_SEMICOLON
	MULTIPART_NAME MULTIPART_PART_HEADERS MULTIPART_STRICT_ERROR MULTIPART_UNMATCHED_BOUNDARY OUTBOUND_DATA_ERROR PATH_INFO QUERY_STRING
	REMOTE_ADDR REMOTE_HOST REMOTE_PORT REQBODY_ERROR REQBODY_ERROR_MSG REQBODY_PROCESSOR REQBODY_PROCESSOR_ERROR
	REQBODY_PROCESSOR_ERROR_MSG REQUEST_BASENAME REQUEST_BODY REQUEST_BODY_LENGTH REQUEST_COOKIES REQUEST_COOKIES_NAMES REQUEST_FILENAME
	REQUEST_HEADERS REQUEST_HEADERS_NAMES REQUEST_LINE REQUEST_METHOD REQUEST_PROTOCOL REQUEST_URI REQUEST_URI_RAW RESPONSE_BODY
	RESPONSE_CONTENT_LENGTH RESPONSE_CONTENT_TYPE RESPONSE_HEADERS RESPONSE_HEADERS_NAMES RESPONSE_PROTOCOL RESPONSE_STATUS RULE
	SERVER_ADDR SERVER_NAME SERVER_PORT STATUS STATUS_LINE TIME TIME_DAY TIME_EPOCH TIME_HOUR TIME_MIN TIME_MON TIME_SEC TIME_WDAY
	TIME_YEAR TX UNIQUE_ID URLENCODED_ERROR XML`)

// mayRead checks the name of a variable.
func mayRead(name string) error {
	if !slices.Contains(readable, strings.ToUpper(name)) {
		return fmt.Errorf("the variable %s is not allowed", name)
	}
	return nil
}

// macros checks the variables that are filled into a text. Percent signs are only theirs.
func macros(text string) error {
	for {
		begin := strings.IndexByte(text, '%')
		if begin < 0 {
			return nil
		}
		found := macro.FindStringSubmatch(text[begin:])
		if found == nil {
			return errors.New("must have % only in variables such as %{REMOTE_ADDR}")
		}
		if err := mayRead(found[1]); err != nil {
			return err
		}
		text = text[begin+len(found[0]):]
	}
}

// variables are those of a rule, with a bar between them.
func variables(_ *parser, text string) (string, error) { return variableList(text, "|") }

// targets are those of a rule that is changed.
func targets(_ *parser, text string) (string, error) {
	written, err := variableList(strings.ReplaceAll(text, ",", "|"), "|")
	return quoted(strings.ReplaceAll(written, "|", ",")), err
}

func variableList(text, separator string) (string, error) {
	list := strings.Split(text, separator)
	for _, one := range list {
		found := variableForm.FindStringSubmatch(one)
		if found == nil {
			return "", fmt.Errorf("the variable %q has another form than is allowed", one)
		}
		if err := mayRead(found[2]); err != nil {
			return "", err
		}
	}
	return strings.Join(list, separator), nil
}
