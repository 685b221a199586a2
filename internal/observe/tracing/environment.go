package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// The protocols of OTLP, as OTEL_EXPORTER_OTLP_PROTOCOL names them.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
	protocolJSON = "http/json"
)

// prefixes are those of the exporter's variables. The first one that is set counts.
func prefixes() []string { return []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} }

// variable is the value of a variable of the exporter, empty if it is not set.
func variable(name string) string {
	for _, prefix := range prefixes() {
		if value := strings.TrimSpace(os.Getenv(prefix + name)); value != "" {
			return value
		}
	}
	return ""
}

// NamedByEnvironment reports whether a variable names a collector.
func NamedByEnvironment() bool { return variable("ENDPOINT") != "" }

// hasCollector reports whether settings or the environment name a collector.
func hasCollector(t model.Tracing) bool { return t.Collector != "" || NamedByEnvironment() }

// An environment is what variables say about the exporter. The SDK reads them itself, and uses
// something else for those that it can't read: spans or credentials would go elsewhere, or
// without TLS. So they are checked first.
type environment struct {
	protocol string
	// endpoint is nil if no variable names one.
	endpoint *url.URL
	// tls is set if a variable asks for TLS.
	tls bool
	// secrets are texts that are not logged.
	secrets []string
}

// checkEnvironment returns what is wrong with the variables of the exporter. It says no values:
// they may have credentials.
func checkEnvironment() error {
	checks := []struct {
		name  string
		wrong func(value string) string
	}{
		{"PROTOCOL", wrongProtocol},
		{"ENDPOINT", wrongEndpoint},
		{"INSECURE", oneOf("true", "false")},
		{"COMPRESSION", oneOf("gzip", "none")},
		{"TIMEOUT", wrongTimeout},
		{"HEADERS", wrongHeaders},
		{"CERTIFICATE", wrongCertificate},
	}
	var errs []error
	for _, prefix := range prefixes() {
		for _, check := range checks {
			value := strings.TrimSpace(os.Getenv(prefix + check.name))
			if value == "" {
				continue
			}
			if wrong := check.wrong(value); wrong != "" {
				errs = append(errs, fmt.Errorf("invalid value of %s%s: %s", prefix, check.name, wrong))
			}
		}
		certificate, key := strings.TrimSpace(os.Getenv(prefix+"CLIENT_CERTIFICATE")), strings.TrimSpace(os.Getenv(prefix+"CLIENT_KEY"))
		if certificate == "" && key == "" {
			continue
		}
		if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
			errs = append(errs, fmt.Errorf("invalid value of %[1]sCLIENT_CERTIFICATE or %[1]sCLIENT_KEY: must be files with a certificate and its key: %w", prefix, err))
		}
	}
	return errors.Join(errs...)
}

// readEnvironment reads variables that are checked.
func readEnvironment() environment {
	e := environment{protocol: variable("PROTOCOL"), tls: strings.EqualFold(variable("INSECURE"), "false")}
	if e.protocol == "" {
		e.protocol = protocolGRPC
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE"} {
		e.tls = e.tls || variable(name) != ""
	}
	if u, err := url.Parse(variable("ENDPOINT")); err == nil && u.Host != "" {
		e.endpoint, e.tls = u, e.tls || strings.EqualFold(u.Scheme, "https")
		if password, set := u.User.Password(); set {
			e.secrets = append(e.secrets, password)
		}
	}
	for entry := range strings.SplitSeq(variable("HEADERS"), ",") {
		_, value, _ := strings.Cut(entry, "=")
		decoded, err := url.PathUnescape(value)
		if err != nil {
			continue
		}
		e.secrets = append(e.secrets, strings.TrimSpace(value), strings.TrimSpace(decoded))
		e.secrets = append(e.secrets, strings.Fields(decoded)...)
	}
	return e
}

func wrongProtocol(value string) string {
	return oneOf(protocolGRPC, protocolHTTP, protocolJSON)(value)
}

func oneOf(allowed ...string) func(string) string {
	return func(value string) string {
		if slices.ContainsFunc(allowed, func(one string) bool { return strings.EqualFold(one, value) }) {
			return ""
		}
		return "must be " + strings.Join(allowed[:len(allowed)-1], ", ") + " or " + allowed[len(allowed)-1]
	}
}

func wrongEndpoint(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https") {
		return "must be a URL with http or https, such as http://collector.example:4317"
	}
	return ""
}

func wrongTimeout(value string) string {
	if n, err := strconv.Atoi(value); err != nil || n <= 0 {
		return "must be a number of milliseconds, at least 1"
	}
	return ""
}

func wrongHeaders(value string) string {
	number := 0
	for entry := range strings.SplitSeq(value, ",") {
		number++
		name, text, found := strings.Cut(entry, "=")
		_, err := url.PathUnescape(text)
		if !found || !isToken(strings.TrimSpace(name)) || err != nil {
			return fmt.Sprintf("entry %d must be NAME=VALUE, with the value encoded as in URLs", number)
		}
	}
	return ""
}

// isToken reports whether a text is a name of a header.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func wrongCertificate(value string) string {
	data, err := os.ReadFile(value)
	if err != nil {
		return "must be a file with certificates: " + err.Error()
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return "must be a file with certificates, as PEM"
	}
	return ""
}
