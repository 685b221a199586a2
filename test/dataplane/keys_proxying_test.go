package dataplane_test

import (
	"net/http"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

var bodyKeys = []keyCase{
	{
		key: "proxy-body-size", before: "2k", after: "4k", service: "echo",
		request: headgatetest.Request{Method: http.MethodPost}, body: 3000, see: status, was: "413", is: "200", reloads: 1,
	},
	{
		// A change within one step of nginx.conf.
		key: "proxy-body-size", before: "4k", after: "3k", service: "echo",
		request: headgatetest.Request{Method: http.MethodPost}, body: 4000, see: status, was: "200", is: "413",
	},
	{
		key: "client-body-buffer-size", before: "-", after: "128k", service: "echo",
		request: headgatetest.Request{Method: http.MethodPost}, body: 100_000, see: bodyFile, was: "200 with a file", is: "200 without", reloads: 1,
	},
	{
		key: "proxy-request-buffering", before: "-", after: "off", service: "echo",
		request: headgatetest.Request{Method: http.MethodPost}, body: 500_000, chunked: true, see: length, was: "500000 bytes announced", is: "500000 bytes", reloads: 1,
	},
	{
		key: "proxy-http-version", before: "-", after: "1.0", service: "echo", see: askedBy, was: "HTTP/1.1", is: "HTTP/1.0", reloads: 1,
	},
}

var answerBufferKeys = []keyCase{
	{
		key: "proxy-buffer-size", before: "-", after: "16k", service: "play",
		request: headgatetest.Request{Path: "/headers"}, see: status, was: "502", is: "200", reloads: 1,
	},
	{
		key: "proxy-buffering", before: "-", after: "on", service: "play",
		request: headgatetest.Request{Path: "/first"}, see: inParts, was: "at once", is: "late", reloads: 1, slow: true,
	},
	{
		key: "proxy-buffers-number", before: "-", after: "64", service: "play", see: written("proxy_buffers"), was: "4 4k", is: "64 4k", reloads: 1,
	},
	{
		key: "proxy-max-temp-file-size", before: "-", after: "0", beside: []string{"proxy-buffering: on"}, service: "play",
		request: headgatetest.Request{Path: "/large"}, see: answerFile, was: "a file", is: "no file", reloads: 1, slow: true,
	},
	{
		key: "proxy-busy-buffers-size", before: "-", after: "4k", service: "play", see: written("proxy_busy_buffers_size"), was: "8k", is: "4k", reloads: 1,
	},
}

var (
	never   = []string{"proxy-next-upstream: off"}
	further = []string{"proxy-next-upstream: http_503"}
)

var tryKeys = []keyCase{
	{
		key: "proxy-connect-timeout", before: "30", after: "1", service: "full", annotations: never,
		see: inTime, was: "none", is: "504", slow: true,
	},
	{
		key: "proxy-read-timeout", before: "-", after: "1", service: "play", annotations: never,
		request: headgatetest.Request{Path: "/never"}, see: inTime, was: "none", is: "504", slow: true,
	},
	{
		key: "proxy-send-timeout", before: "-", after: "1", service: "stalled", annotations: append([]string{"proxy-body-size: 0"}, never...),
		request: headgatetest.Request{Method: http.MethodPost}, body: 16 << 20, see: inTime, was: "none", is: "504", slow: true,
	},
	{
		key: "proxy-next-upstream", before: "-", after: "http_503", service: "play",
		request: headgatetest.Request{Path: "/503"}, see: tries, was: "503 after 1", is: "503 after 3", reloads: 1,
	},
	{
		key: "proxy-next-upstream-tries", before: "-", after: "2", service: "play", annotations: further,
		request: headgatetest.Request{Path: "/503"}, see: tries, was: "503 after 3", is: "503 after 2",
	},
	{
		key: "proxy-next-upstream-timeout", before: "-", after: "1", service: "play", annotations: further,
		request: headgatetest.Request{Path: "/late"}, see: tries, was: "503 after 3", is: "503 after 1", reloads: 1, slow: true,
	},
	{
		key: "retry-non-idempotent", before: "-", after: "true", service: "play", annotations: further,
		request: headgatetest.Request{Method: http.MethodPost, Path: "/503"}, body: 1, see: tries, was: "503 after 1", is: "503 after 3", reloads: 1,
	},
}
