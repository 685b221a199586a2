// Command collector is a collector of OpenTelemetry for tests: it receives spans over OTLP, with
// TLS and bearer tokens if its configuration asks for them, and writes them to a file.
package main

import (
	"fmt"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "a collector for tests", Version: "0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()}, DefaultScheme: "file",
		}},
	})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

func factories() (otelcol.Factories, error) {
	lines := newLines()
	otlp, token := otlpreceiver.NewFactory(), bearertokenauthextension.NewFactory()
	return otelcol.Factories{
		Receivers:  map[component.Type]receiver.Factory{otlp.Type(): otlp},
		Exporters:  map[component.Type]exporter.Factory{lines.Type(): lines},
		Extensions: map[component.Type]extension.Factory{token.Type(): token},
		Telemetry:  otelconftelemetry.NewFactory(),
	}, nil
}
