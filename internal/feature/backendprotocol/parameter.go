package backendprotocol

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

const (
	documentRootName = "DOCUMENT_ROOT"
	scriptName       = "SCRIPT_NAME"
	hostParameter    = "HTTP_HOST"
	proxyParameter   = "HTTP_PROXY"
	// With another length than that of the body, a backend may read the rest as the next request
	// of the connection, which clients could write so.
	lengthParameter = "CONTENT_LENGTH"
	theLength       = "$content_length"
)

// parameterNames are the names that each ConfigMap may have: NGINX takes no variable for a name,
// and no text of a tenant stands in its configuration.
func parameterNames() []string {
	return []string{
		// CGI/1.1, and what servers send besides.
		"AUTH_TYPE", "CONTENT_TYPE", documentRootName, "DOCUMENT_URI", "GATEWAY_INTERFACE", "HTTPS", "PATH_INFO", "PATH_TRANSLATED",
		"QUERY_STRING", "REDIRECT_STATUS", "REDIRECT_URL", "REMOTE_ADDR", "REMOTE_HOST", "REMOTE_PORT", "REMOTE_USER", "REQUEST_METHOD", "REQUEST_SCHEME",
		"REQUEST_URI", "SCRIPT_FILENAME", scriptName, "SERVER_ADDR", "SERVER_ADMIN", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "SERVER_SOFTWARE",
		// PHP, its frameworks and programs.
		"PHP_ADMIN_VALUE", "PHP_AUTH_USER", "PHP_VALUE", "APP_DEBUG", "APP_ENV", "APP_NAME", "APP_SECRET", "APP_URL", "APPLICATION_ENV", "CI_ENV",
		"DATABASE_URL", "ENVIRONMENT", "FLOW_CONTEXT", "MAGE_MODE", "MAGE_RUN_CODE", "MAGE_RUN_TYPE", "SYMFONY_DEBUG", "SYMFONY_ENV", "TYPO3_CONTEXT",
		"WP_ENV", "YII_DEBUG", "YII_ENV", "front_controller_active", "modHeadersAvailable",
		// For a program of the owner.
		"MY_PARAM",
	}
}

// variableOf is the name of the variable with the value of a parameter.
func variableOf(parameter string) string { return "hg_fastcgi_" + strings.ToLower(parameter) }

// headerForm are parameters that are made from headers. Headers of no other form are a
// tenant's to set, since NGINX itself reads some.
var headerForm = regexp.MustCompile(`^HTTP_X_[A-Z0-9_]{1,100}$`)

// headerOf is the header that becomes a parameter.
func headerOf(parameter string) string {
	return strings.ReplaceAll(strings.TrimPrefix(parameter, "HTTP_"), "_", "-")
}

// ownHeaders are parameters that say who the client is, and what it asked for.
func ownHeaders() []string {
	return []string{
		"HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_SCHEME",
		"HTTP_X_ORIGINAL_FORWARDED_FOR", "HTTP_X_ORIGINAL_FORWARDED_HOST", "HTTP_X_REAL_IP", "HTTP_X_REQUEST_ID", "HTTP_X_SCHEME",
	}
}

// Bounds of a ConfigMap, in parameters and in bytes of all values. NGINX sends at most 65535
// bytes of parameters and headers.
const (
	maxParameters = 64
	maxLength     = 8192
)

var valueForm = regexp.MustCompile(`^[!-~]*$`)

// bounded returns the first problem of a ConfigMap, in the order of its keys, and the key,
// empty for a problem of the whole ConfigMap.
func bounded(data map[string]string, names []string) (key, problem string) {
	length := 0
	for _, key = range slices.Sorted(maps.Keys(data)) {
		value := strings.TrimSpace(data[key])
		length += len(value)
		switch {
		case key == lengthParameter && value != theLength:
			return key, "the value must be " + theLength
		case key == lengthParameter, key == proxyParameter && value == "", key == hostParameter, slices.Contains(names, key):
		case slices.Contains(ownHeaders(), key):
			return key, "this parameter is set by Headgate"
		case !headerForm.MatchString(key):
			return key, "the name must be listed in the key " + allowedKey + ", or be HTTP_HOST, HTTP_X_ and 1 to 100 capital letters, digits and underscores, or one of " + strings.Join(names, ", ")
		}
		if !valueForm.MatchString(value) {
			return key, fmt.Sprintf("invalid value %q: must be printable ASCII characters without spaces", finding.Shorten(value))
		}
	}
	if len(data) > maxParameters || length > maxLength {
		return "", fmt.Sprintf("must have at most %d parameters, with values of at most %d bytes together", maxParameters, maxLength)
	}
	return "", ""
}

func quoted(key string) string { return fmt.Sprintf("%q", finding.Shorten(key)) }
