package limit

func streams() Group {
	return Group{"TCP and UDP services", "", []Limit{
		{"Connections or UDP sessions", "port", constant("internal/stream/limits.go", "MaxConnections", count), "", "a further connection is closed; for a further session, one that is idle ends; `headgate_stream_refused_total`", ""},
		{"Files of the process that are left for all else than connections", "instance", constant("internal/stream/limits.go", "spareFiles", count), "", "the same", ""},
		{"Pipes for bytes that are spliced", "instance", constant("internal/stream/splice_linux.go", "MaxPipes", count), "", "bytes are copied through a buffer", ""},
		{"Sockets of UDP sessions that are kept for the next ones", "family of addresses", constant("internal/stream/spare_linux.go", "maxSpare", count), "", "they are closed", ""},
		{"Time that a connection or UDP session can be idle", "connection", text("internal/feature/stream/stream.go", `Key: "proxy-stream-timeout", Default: ([^,]+),`, duration), "proxy-stream-timeout", "it ends", ""},
		{"Time for the header of the PROXY protocol", "connection", constant("internal/stream/header.go", "HeaderTimeout", duration), "", "the connection is closed; status 400", ""},
		{"Time to connect to an endpoint", "try", constant("internal/stream/tcp.go", "ConnectTimeout", duration), "", "the connection is closed; status 502", ""},
		{"The same, if there is another one to try", "try", constant("internal/stream/tcp.go", "ConnectTimeoutNext", duration), "", "it is tried", ""},
		{"Time for which others come first after an endpoint failed", "endpoint and port", constant("internal/stream/table.go", "avoidTime", duration), "", "", ""},
		{"Time between two tries to open a port, at most", "port", constant("internal/stream/stream.go", "maxRetry", duration), "", "", ""},
	}}
}

func passthrough() Group {
	return Group{"TLS passthrough", "", []Limit{
		{"Connections that are passed through", "host", constant("internal/stream/limits.go", "MaxConnections", count), "", "a further connection is closed; `headgate_stream_refused_total`", ""},
		{"Connections whose ClientHello has not come", "instance", constant("internal/stream/tls_waiting.go", "MaxWaiting", count), "", "the one that has waited for longest is closed; `headgate_stream_refused_total`", ""},
		{"Time between two lines of the log about missing headers of the PROXY protocol", "instance", constant("internal/stream/seldom.go", "logInterval", duration), "", "the next line says how many were left out", ""},
		{"Time for the ClientHello", "connection", constant("internal/stream/tls_connection.go", "HelloTimeout", duration), "", "the connection is closed; status 400", ""},
		{"Bytes of the ClientHello", "connection", constant("internal/stream/clienthello/clienthello.go", "MaxBytes", bytes), "", "NGINX gets the connection", ""},
		{"Time that a connection waits for NGINX", "connection", constant("internal/stream/tls_connection.go", "nginxTimeout", duration), "", "the connection is closed; status 502", ""},
		{"Time for a client to end a connection that NGINX has ended", "connection", constant("internal/stream/tls_connection.go", "lingerTime", duration), "", "the connection is closed", ""},
	}}
}
