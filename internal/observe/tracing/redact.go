package tracing

import (
	"net/url"
	"slices"
	"strings"
)

// secrets are arguments whose values are secrets, in lower case.
func secrets() []string {
	return []string{
		"access_token", "api_key", "apikey", "auth", "awsaccesskeyid", "client_secret", "code", "id_token", "jwt", "key", "otp", "passwd",
		"password", "private_token", "pwd", "refresh_token", "secret", "session", "sessionid", "sig", "signature", "state", "token",
		"x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-credential", "x-goog-signature",
	}
}

// redacted is a query without the values of secrets.
func redacted(query string) string {
	names := secrets()
	arguments := strings.Split(query, "&")
	for i, argument := range arguments {
		name, _, found := strings.Cut(argument, "=")
		// A backend decodes the name before it compares it.
		plain, err := url.QueryUnescape(name)
		if err != nil {
			plain = name
		}
		if found && slices.Contains(names, strings.ToLower(plain)) {
			arguments[i] = name + "=REDACTED"
		}
	}
	return strings.Join(arguments, "&")
}
