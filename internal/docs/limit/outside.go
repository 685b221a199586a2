package limit

func certificates() Group {
	return Group{"Certificates", "", []Limit{
		{"`tls.crt`", "Secret", constant(certificate, "maxChainBytes", bytes), "", "the default certificate is served; `BadCertificate`", ""},
		{"Certificates in it", "Secret", constant(certificate, "maxCertificates", count), "", "the same", ""},
		{"`tls.key`", "Secret", constant(certificate, "maxKeyBytes", bytes), "", "the same", ""},
		{"RSA key, in bits", "Secret", constant("internal/guard/key.go", "maxRSABits", count), "", "the same", ""},
		{"Issuers that are fetched for a chain", "certificate", constant("internal/source/pki/issuers.go", "maxIssuers", count), "", "the chain stays incomplete; `IncompleteChain`", ""},
		{"Issuer's certificate or OCSP response", "fetch", constant("internal/source/pki/client.go", "maxBytes", bytes), "", "the fetch fails", ""},
		{"Time of a fetch", "fetch", constant("internal/source/pki/client.go", "maxTime", duration), "", "the same", ""},
		{"Time between two fetches of a response, at least", "certificate", constant("internal/source/pki/ocsp.go", "minPause", duration), "", "", ""},
	}}
}

func dnsNames() Group {
	return Group{"DNS names", "Of Services of type ExternalName, auth services and mirrors.", []Limit{
		{"Addresses", "name", constant("internal/source/dns/lookup.go", "maxAddresses", count), "", "the others are not used", ""},
		{"CNAMEs", "lookup", constant("internal/source/dns/lookup.go", "maxAliases", count), "", "the lookup fails; `Unresolved`", ""},
		{"Time for which an answer is used, at least", "name", constant("internal/source/dns/history.go", "minTTL", duration), "", "", ""},
		{"The same, at most", "name", constant("internal/source/dns/history.go", "maxTTL", duration), "", "it is looked up again", ""},
		{"Time for which a change waits for new names", "change", constant("internal/controller/update.go", "namesInUpdate", duration), "", "their backends have no endpoints until they are resolved", "A2"},
		{"Time for which a change waits for new Secrets", "change", constant("internal/controller/update.go", "secretsInUpdate", duration), "", "they are another change", ""},
	}}
}

func healthChecks() Group {
	return Group{"Health checks", "Of endpoints, by `health-check`. Each replica makes its own.", []Limit{
		{"Checks at a time of endpoints whose last check succeeded", "instance", constant(checkGo, "knownAtOnce", count), "", "they wait; a namespace has at most a quarter", ""},
		{"The same of new endpoints, and of those whose last check failed", "instance", constant(checkGo, "failedAtOnce", count), "", "the same", ""},
		{"Time for which a check takes its place, at least", "check", constant(checkGo, "slotTime", duration), "", "a namespace with more endpoints than 320 a second has longer intervals", ""},
		{"Interval, at least", "endpoint", constant(healthGo, "minInterval", duration), "", "the default is used; `InvalidValue`", ""},
		{"Time of a check, at most", "check", constant(healthGo, "maxTimeout", duration), "", "the same", ""},
		{"Path, or name of a gRPC service", "backend", constant(healthGo, "maxTarget", bytes), "", "the same", ""},
		{"Header that is read of an answer", "check", constant(probeGo, "maxHeader", bytes), "", "the check fails", ""},
		{"Body that is read of an answer", "check", constant(probeGo, "maxBody", bytes), "", "the rest is not read", ""},
		{"Time between two changes of a backend because of checks, at least", "backend", constant(checkGo, "pace", duration), "", "they are one change", ""},
		{"Endpoints that a finding names", "backend", constant("internal/build/health.go", "maxNamed", count), "", "it has the number of the others", ""},
		{"Services that are counted by name in `headgate_unhealthy_endpoints`", "instance", constant("internal/observe/metrics/health.go", "maxServices", count), "", "they are counted together", ""},
	}}
}

func admission() Group {
	return Group{"Admission webhook", "Anyone who reaches its port can ask.", []Limit{
		{"Size of a request", "request", constant(admissionGo, "maxBody", bytes), "", "413", ""},
		{"Size of an Ingress", "request", constant(admissionGo, "maxObject", bytes), "", "the Ingress is refused", ""},
		{"Size of all requests together", "instance", constant(admissionGo, "maxBodies", bytes), "", "503", ""},
		{"Connections", "instance", constant(admissionGo, "maxConnections", count), "", "they are closed", ""},
		{"Time to send a header, or for a handshake", "connection", constant(admissionGo, "headerTimeout", duration), "", "the connection is closed", ""},
		{"Time to send a request", "request", constant(admissionGo, "readTimeout", duration), "", "408, or the connection is closed", ""},
		{"Time between two requests", "connection", constant(admissionGo, "idleTimeout", duration), "", "the connection is closed", ""},
		{"Time that a review waits for others", "request", constant(admissionGo, "reviewTimeout", duration), "", "503", ""},
		{"Hosts, names and backends of an Ingress that are reviewed", "request", constant("internal/admission/review/review.go", "maxUnits", count), "", "the rest is not reviewed; findings report it later", ""},
		{"Validity of a certificate (`--webhook-self-signed`)", "certificate", constant(selfSignedGo, "Validity", duration), "", "", ""},
		{"Time before its end at which it is renewed", "certificate", constant(selfSignedGo, "RenewBefore", duration), "", "", ""},
		{"Time for which API servers have a new CA before its certificate is served", "renewal", constant(selfSignedGo, "Delay", duration), "", "", ""},
		{"Time until a CA bundle that was overwritten is written again, and until a new certificate is served", "instance", constant(selfSignedGo, "Interval", duration), "", "", ""},
		{"Findings in an answer", "request", constant("internal/admission/review/decision.go", "maxSentences", count), "", "their number", ""},
	}}
}
