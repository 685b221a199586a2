package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// settings are those of an exporter of the type lines.
type settings struct {
	// Path is the file to append to.
	Path string `mapstructure:"path"`
	// Delay is how long the collector takes for each batch.
	Delay time.Duration `mapstructure:"delay"`
}

// newLines makes exporters that write each batch as a line: OTLP as JSON.
func newLines() exporter.Factory {
	return exporter.NewFactory(component.MustNewType("lines"),
		func() component.Config { return &settings{} },
		exporter.WithTraces(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Traces, error) {
			return &lines{settings: *c.(*settings)}, nil
		}, component.StabilityLevelDevelopment))
}

type lines struct {
	settings settings

	mu   sync.Mutex
	file *os.File
}

// Start implements component.Component.
func (l *lines) Start(context.Context, component.Host) (err error) {
	if l.file, err = os.OpenFile(l.settings.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("open the file for spans: %w", err)
	}
	return nil
}

// Shutdown implements component.Component.
func (l *lines) Shutdown(context.Context) error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// Capabilities implements consumer.Traces.
func (*lines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces implements consumer.Traces.
func (l *lines) ConsumeTraces(ctx context.Context, spans ptrace.Traces) error {
	select {
	case <-time.After(l.settings.Delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	line, err := new(ptrace.JSONMarshaler).MarshalTraces(spans)
	if err != nil {
		return fmt.Errorf("write spans as JSON: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.file.Write(append(line, '\n'))
	return err
}
