package proxying

const (
	bodies, streamed, unbuffered = "proxy-body-size", "proxy-request-buffering", "proxy-buffering"
	size, protocol               = "proxy-buffer-size", "backend-protocol"
)

// common are annotations as they stand in the charts and manual pages of widely used programs: limits of
// bodies and whether bodies and responses are buffered; buffers for large headers; and TLS or gRPC to the
// backend. A limit between two steps has one more profile, which the access phase belongs to. See
// docs/decisions/0071.
func common() (list annotations) {
	for _, limit := range []string{"0", "2m", "5m", "8m", "10m", "20m", "32m", "50m", "64m", "100m", "200m", "256m", "500m", "512m", "1g", "2g"} {
		list.add(bodies, limit)
	}
	for _, limit := range []string{"0", "10g"} {
		list.add(bodies, limit, streamed, "off")
	}
	list.add(unbuffered, "off")
	list.add(bodies, "0", unbuffered, "off", streamed, "off")
	for _, buffer := range []string{"8k", "16k", "64k", "128k", "256k"} {
		list.add(size, buffer)
	}
	// NGINX makes a TLS context for each of HTTPS and GRPCS in each variant, which takes time at each reload.
	for _, way := range []string{"HTTPS", "GRPC", "GRPCS"} {
		list.add(protocol, way)
	}
	list.add(protocol, "HTTPS", bodies, "0")
	return list
}

// occasional are further ones, and their combinations.
func occasional() (list annotations) {
	for _, limit := range []string{"4m", "16m", "128m", "4g", "5g", "8g", "10g", "50g"} {
		list.add(bodies, limit)
	}
	for _, limit := range []string{"1m", "50m", "100m", "1g", "2g"} {
		list.add(bodies, limit, streamed, "off")
	}
	list.add(unbuffered, "off", streamed, "off")
	for _, limit := range []string{"0", "100m"} {
		list.add(bodies, limit, unbuffered, "off")
	}
	list.add(bodies, "100m", unbuffered, "off", streamed, "off")
	for _, limit := range []string{"1m", "0", "100m"} {
		list.add(bodies, limit, unbuffered, "on")
	}
	list.add(size, "32k")
	for _, buffer := range []string{"8k", "16k", "32k", "64k", "128k", "256k"} {
		list.add(size, buffer, bodies, "0")
	}
	list.add(size, "128k", bodies, "50m")
	list.add(size, "16k", "proxy-buffers-number", "8")
	list.add("proxy-http-version", "1.0")
	list.add("proxy-next-upstream", "off")
	list.add("proxy-next-upstream", "error timeout http_502")
	list.add("proxy-next-upstream", "error timeout http_502 http_503 http_504")
	list.add("client-body-buffer-size", "1m")
	list.add("client-body-buffer-size", "1m", bodies, "50m")
	list.add(protocol, "GRPC", bodies, "0")
	return list
}

// annotations are sets of them.
type annotations []map[string]string

// add adds a set of names, each with its value behind it.
func (a *annotations) add(words ...string) {
	set := map[string]string{}
	for i := 0; i < len(words); i += 2 {
		set[words[i]] = words[i+1]
	}
	*a = append(*a, set)
}
