package dataplane_test

import (
	"net/http"
	"strings"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// asksFor is a request for text of 300 bytes in an encoding, by a User-Agent.
func asksFor(encoding string) headgatetest.Request {
	return headgatetest.Request{Path: "/text", Header: http.Header{"Accept-Encoding": {encoding}, "User-Agent": {"Test/1"}}}
}

const compressibleText = 300

// encoding sees how a response is compressed, and whether that has fewer bytes than 50.
func encoding(_ *keyFixture, v *keyVisit) string {
	r := v.ask()
	seen := r.Header.Get("Content-Encoding")
	if len(r.Body) >= 50 {
		seen += " long"
	}
	return strings.TrimSpace(seen)
}

var compressionKeys = []keyCase{
	{key: "use-gzip", before: "-", after: "true", service: "play", request: asksFor("gzip"), see: encoding, was: "long", is: "gzip", reloads: 1},
	{
		key: "gzip-level", before: "-", after: "9", beside: []string{"use-gzip: true"}, service: "play", request: asksFor("gzip"),
		see: written("gzip_comp_level"), was: "1", is: "9", reloads: 1,
	},
	{
		key: "gzip-min-length", before: "-", after: "301", beside: []string{"use-gzip: true"}, service: "play", request: asksFor("gzip"),
		see: encoding, was: "gzip", is: "long", reloads: 1,
	},
	{
		key: "gzip-types", before: "-", after: "text/css", beside: []string{"use-gzip: true"}, service: "play", request: asksFor("gzip"),
		see: encoding, was: "gzip", is: "long", reloads: 1,
	},
	{
		key: "gzip-disable", before: "-", after: "^test/[0-9]", beside: []string{"use-gzip: true"}, service: "play", request: asksFor("gzip"),
		see: encoding, was: "gzip", is: "long", reloads: 1,
	},
	{key: "enable-brotli", before: "-", after: "true", beside: []string{"use-gzip: true"}, service: "play", request: asksFor("br, gzip"), see: encoding, was: "gzip", is: "br", reloads: 1},
	{
		key: "brotli-level", before: "-", after: "11", beside: []string{"enable-brotli: true"}, service: "play", request: asksFor("br"),
		see: written("brotli_comp_level"), was: "4", is: "11", reloads: 1,
	},
	{
		key: "brotli-min-length", before: "-", after: "301", beside: []string{"enable-brotli: true"}, service: "play", request: asksFor("br"),
		see: encoding, was: "br", is: "long", reloads: 1,
	},
	{
		key: "brotli-types", before: "-", after: "text/css", beside: []string{"enable-brotli: true"}, service: "play", request: asksFor("br"),
		see: encoding, was: "br", is: "long", reloads: 1,
	},
}
