package tracing

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// setVariables sets variables of the exporter, as NAME=VALUE.
func setVariables(t *testing.T, list ...string) {
	t.Helper()
	for _, one := range list {
		name, value, _ := strings.Cut(one, "=")
		t.Setenv(name, value)
	}
}

// A value that the SDK would not take names its variable, says what is allowed, and is not in the error.
func TestCheckEnvironment(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	const prefix, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	for _, c := range []struct{ name, value, want string }{
		{"PROTOCOL", "thrift-s3cret", "must be grpc, http/protobuf or http/json"},
		{"ENDPOINT", "s3cret.test:4317", "must be a URL with http or https"},
		{"ENDPOINT", "ftp://s3cret.test", "must be a URL with http or https"},
		{"ENDPOINT", "http://", "must be a URL with http or https"},
		{"ENDPOINT", "http://a b/s3cret", "must be a URL with http or https"},
		{"INSECURE", "s3cret", "must be true or false"},
		{"COMPRESSION", "s3cret", "must be gzip or none"},
		{"TIMEOUT", "10s3cret", "must be a number of milliseconds, at least 1"},
		{"TIMEOUT", "0", "must be a number of milliseconds, at least 1"},
		{"HEADERS", "a=1,s3cret", "entry 2 must be NAME=VALUE"},
		{"HEADERS", "na me=s3cret", "entry 1 must be NAME=VALUE"},
		{"HEADERS", "=s3cret", "entry 1 must be NAME=VALUE"},
		{"HEADERS", "a=s3cret%zz", "entry 1 must be NAME=VALUE"},
		{"CERTIFICATE", filepath.Join(text, "missing"), "must be a file with certificates: "},
		{"CERTIFICATE", text, "must be a file with certificates, as PEM"},
		{"CLIENT_CERTIFICATE", text, "must be files with a certificate and its key: "},
		{"CLIENT_KEY", text, "must be files with a certificate and its key: "},
	} {
		for _, p := range []string{prefix, traces} {
			t.Run(p+c.name+"="+strings.ReplaceAll(c.value, "/", "|"), func(t *testing.T) {
				t.Setenv(p+c.name, c.value)
				err := checkEnvironment()
				if err == nil || !strings.Contains(err.Error(), p+c.name) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("the error is %v, want one of %s that says %q", err, p+c.name, c.want)
				}
			})
		}
	}
}

// Values that the SDK takes, in the forms that people write.
func TestCheckEnvironmentTakes(t *testing.T) {
	setVariables(t, "OTEL_EXPORTER_OTLP_PROTOCOL= http/protobuf ", "OTEL_EXPORTER_OTLP_ENDPOINT=HTTPS://user:pass@[::1]:4318/x", "OTEL_EXPORTER_OTLP_INSECURE=TRUE",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TIMEOUT=1", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20a=b, x-y = ,z=", "OTEL_EXPORTER_OTLP_CERTIFICATE=")
	if err := checkEnvironment(); err != nil {
		t.Error(err)
	}
}

// The variables of traces win over those of all signals.
func TestEnvironmentPrecedence(t *testing.T) {
	setVariables(t, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=https://all.test",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces.test:4318", "OTEL_EXPORTER_OTLP_TRACES_INSECURE= ")
	e := readEnvironment()
	if e.protocol != protocolJSON || e.endpoint == nil || e.endpoint.Host != "traces.test:4318" || e.tls {
		t.Errorf("%+v", e)
	}
}

// OTEL_SERVICE_NAME wins over OTEL_RESOURCE_ATTRIBUTES, and both over the key.
func TestServiceName(t *testing.T) {
	s := Settings{Version: "1.2.3", Pod: "headgate-0"}
	name := func() string {
		t.Helper()
		r, err := s.newResource("key")
		if err != nil {
			t.Fatal(err)
		}
		value, _ := r.Set().Value("service.name")
		if pod, _ := r.Set().Value("k8s.pod.name"); pod.AsString() != "headgate-0" {
			t.Errorf("the pod is %q", pod.AsString())
		}
		return value.AsString()
	}
	if got := name(); got != "key" {
		t.Errorf("without variables the service is %q", got)
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=attributes,a=b")
	if got := name(); got != "attributes" {
		t.Errorf("with attributes the service is %q", got)
	}
	t.Setenv("OTEL_SERVICE_NAME", "variable")
	if got := name(); got != "variable" {
		t.Errorf("with the variable the service is %q", got)
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "s3cret")
	if _, err := s.newResource("key"); err == nil || !strings.Contains(err.Error(), "OTEL_RESOURCE_ATTRIBUTES") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}

// A collector may repeat what it got: no credential is logged, in any form.
func TestRedact(t *testing.T) {
	setVariables(t, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20s3cret-token,x-key= raw%2Fkey ,short=abc", "OTEL_EXPORTER_OTLP_ENDPOINT=https://user:pa55word@a.test")
	e := readEnvironment()
	for text, want := range map[string]string{
		"bad token s3cret-token":                  "bad token [redacted]",
		"bad Bearer s3cret-token":                 "bad [redacted]",
		"bad Bearer%20s3cret-token":               "bad [redacted]",
		"key raw/key or raw%2Fkey":                "key [redacted] or [redacted]",
		"dial user:pa55word@a.test":               "dial user:[redacted]@a.test",
		"status 400, body: anything s3cret-token": "status 400, ",
		"abc is too short to be a credential":     "abc is too short to be a credential",
		strings.Repeat("é", maxError):             strings.Repeat("é", maxError/2),
		strings.Repeat("x", 290) + "s3cret-token": strings.Repeat("x", 290) + "[redacted]",
		"x" + strings.Repeat("é", maxError):       "x" + strings.Repeat("é", maxError/2-1),
	} {
		if got := e.redact(errors.New(text)); got != want {
			t.Errorf("%q is logged as %q, want %q", text, got, want)
		}
	}
}
