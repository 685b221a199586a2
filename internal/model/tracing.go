package model

import "time"

// Tracing is what keys say about spans of requests, and where they are sent.
type Tracing struct {
	// On makes spans of requests whose route does not say otherwise.
	On bool
	// Sampler decides which requests have spans.
	Sampler Sampler
	// Ratio is the share of traces that SampleRatio samples, from 0 to 1.
	Ratio float64
	// ParentBased takes over what the client decided, if it sent a trace and is trusted.
	ParentBased bool
	// ServiceName is the attribute service.name of all spans.
	ServiceName string
	// Collector is the host and port of the collector, empty for none: the variables of the
	// environment of OpenTelemetry (OTEL_EXPORTER_OTLP_*) may name one then.
	Collector string
	// HasCollector is set where one of them names a collector. Without one no request has
	// spans. Of all settings of tracing, only this one is in nginx.conf.
	HasCollector bool
	// QueueSize is how many spans may wait for their export, BatchSize how many are exported
	// at once, and Delay how long spans wait for others.
	QueueSize, BatchSize int
	Delay                time.Duration
}

// A Sampler decides which requests have spans.
type Sampler string

// The samplers of OpenTelemetry, as the key otel-sampler names them.
const (
	SampleAll    Sampler = "AlwaysOn"
	SampleNone   Sampler = "AlwaysOff"
	SampleRatio  Sampler = "TraceIdRatioBased"
	SampleParent Sampler = "ParentBased"
)

// A Trace says how requests for a route are traced. The zero value: they are not.
type Trace struct {
	On bool
	// Distrusts begins a new trace for each request, also where the client sent one.
	Distrusts bool
	// Name is the name of the spans in the form of the feature that sets it: plain data. Nil
	// for the usual name.
	Name any
}
