package proxying

// common are annotations as they stand in the charts and manual pages of widely used programs: limits of
// bodies and whether bodies and responses are buffered; buffers for large headers; retries; and what of
// these stands beside TLS or gRPC to the backend. A limit between two steps has one more profile, which the
// access phase belongs to. See docs/decisions/0071.
func common() []map[string]string {
	const size, streamed, unbuffered = "proxy-body-size", "proxy-request-buffering", "proxy-buffering"
	var list []map[string]string
	add := func(annotations ...string) {
		set := map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			set[annotations[i]] = annotations[i+1]
		}
		list = append(list, set)
	}
	for _, limit := range []string{"0", "2m", "4m", "5m", "8m", "10m", "16m", "20m", "32m", "50m", "64m", "100m", "128m", "200m", "256m", "500m", "512m", "1g", "1024m", "2g", "4g", "5g", "8g", "10g", "50g"} {
		add(size, limit)
	}
	for _, limit := range []string{"0", "1m", "50m", "100m", "1g", "2g", "10g"} {
		add(size, limit, streamed, "off")
	}
	for _, limit := range []string{"1m", "0", "100m"} {
		add(size, limit, unbuffered, "off")
		add(size, limit, unbuffered, "off", streamed, "off")
		add(size, limit, unbuffered, "on")
	}
	for _, buffer := range []string{"8k", "16k", "32k", "64k", "128k", "256k"} {
		add("proxy-buffer-size", buffer)
		add("proxy-buffer-size", buffer, size, "0")
	}
	add("proxy-buffer-size", "128k", "proxy-buffers-number", "4", size, "50m")
	add("proxy-buffer-size", "16k", "proxy-buffers-number", "8")
	add("proxy-http-version", "1.0")
	add("proxy-next-upstream", "off")
	add("proxy-next-upstream", "error timeout http_502")
	add("proxy-next-upstream", "error timeout http_502 http_503 http_504")
	add("client-body-buffer-size", "1m")
	add("client-body-buffer-size", "1m", size, "50m")
	for _, protocol := range []string{"HTTPS", "GRPC", "GRPCS"} {
		add("backend-protocol", protocol)
		add("backend-protocol", protocol, size, "0")
	}
	for _, limit := range []string{"10m", "50m", "100m", "1g"} {
		add("backend-protocol", "HTTPS", size, limit)
	}
	add("backend-protocol", "HTTPS", size, "0", streamed, "off")
	add("backend-protocol", "HTTPS", "proxy-buffer-size", "128k")
	return list
}
