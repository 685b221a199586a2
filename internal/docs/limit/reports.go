package limit

func logs() Group {
	return Group{"Logs, findings and Events", "", []Limit{
		{"Lines of Lua in the error log, a second", "host, place and worker", text(logLua, `a line a second for`, one), "", "left out; the next line says how many", "C1"},
		{"The same", "worker", constant(logLua, "LINES", count), "", "the same", "C1"},
		{"Lines of `enable-rewrite-log`, a second", "host and worker", constant(logLua, "NOTICES_OF_PLACE", count), "", "the same", ""},
		{"The same", "worker", constant(logLua, "NOTICES", count), "", "the same", ""},
		{"Lines about a namespace whose time is up, a minute", "namespace", text("lua/headgate/budget.lua", `line a minute about an owner`, one), "", "left out", "A1"},
		{"Log that waits to be written", "log", constant("internal/observe/linequeue/linequeue.go", "MaxBytes", bytes), "", "lines are dropped and counted; no request and no change waits", "C1"},
		{"Findings of one code", "object", constant("internal/finding/finding.go", "maxAlike", count), "", "one finding has the number of the others", ""},
		{"Findings that are logged one by one", "change", constant("internal/observe/tracker/tracker.go", "maxLogged", count), "", "one line has the number of the others", ""},
		{"Namespaces that are counted by name in `headgate_refusals_total`", "instance", constant("lua/headgate/counters.lua", "MAX_REFUSED", count), "", "they are counted together", ""},
		{"Events, a second", "instance", constant(eventGo, "perSecond", count), "", "they wait", ""},
		{"Events at once", "instance", constant(eventGo, "burst", count), "", "the same", ""},
		{"Events without a pause", "object", constant("internal/observe/event/account.go", "maxBurst", count), "", "one each 5 minutes", ""},
		{"Events that wait", "namespace", constant("internal/observe/event/queue.go", "maxPerNamespace", count), "", "dropped", ""},
		{"The same", "instance", constant("internal/observe/event/queue.go", "maxWaiting", count), "", "dropped", ""},
	}}
}

func metrics() Group {
	return Group{"Metrics of requests", "", []Limit{
		{"Combinations of labels (`--metrics-series-per-namespace`)", "namespace", constant("internal/observe/traffic/family.go", "DefaultBudget", count), "", "requests are counted together, with `ingress=\"_others\"`; finding `TooMany`", ""},
		{"Series that could not be reported", "worker", constant(trafficLua, "MAX_SERIES", count), "", "requests are counted together, by namespace", ""},
		{"Buckets of a histogram", "instance", constant("internal/command/option/metrics.go", "maxBuckets", count), "", "the flag is rejected", ""},
	}}
}

func tracing() Group {
	return Group{"Tracing", "No request waits for a span.", []Limit{
		{"Spans that wait", "worker, and instance", text(tracesGo, `Key: "otel-max-queuesize", Default: (\d+),`, count), "otel-max-queuesize", "further ones are dropped; `headgate_spans_dropped_total`", ""},
		{"Memory of those in a worker", "worker", constant(spansLua, "BYTES", bytes), "", "the same", ""},
		{"Memory of those in the controller", "instance", constant("internal/observe/tracing/sender.go", "maxWaiting", bytes), "", "the same", ""},
		{"Spans that the controller exports at once, in bytes of their text", "instance", constant("internal/observe/tracing/sender.go", "maxBatch", bytes), "", "they are another batch", ""},
		{"Shared memory for spans that the controller has not read", "instance", text(nginxConf, `lua_shared_dict hg_spans (\d+)m;`, megabytes), "", "they wait in workers", ""},
		{"Sampled requests that a worker reports at once", "report", constant(spansLua, "REQUESTS", count), "", "they are another report", ""},
		{"Reports that the controller gets at once", "instance", constant(spansLua, "REPORTS", count), "", "it fetches again", ""},
		{"A text in an attribute", "attribute", constant("internal/observe/tracing/span.go", "maxText", bytes), "", "it is cut", ""},
		{"Name of a span", "span", constant("internal/observe/tracing/span.go", "maxName", bytes), "", "the same", ""},
		{"`tracestate` of a client", "request", constant("lua/headgate/trace_context.lua", "MAX_STATE", bytes), "", "it is not passed on", ""},
	}}
}
