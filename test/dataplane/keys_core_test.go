package dataplane_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// coreKeys are about HTTP itself.
var coreKeys = []keyCase{
	{key: "client-header-buffer-size", before: "-", after: "2k", service: "echo", see: written("client_header_buffer_size"), was: "1k", is: "2k", reloads: 1},
	{
		key: "large-client-header-buffers", before: "-", after: "4 32k", service: "echo",
		request: headgatetest.Request{Header: http.Header{"X-Long": {strings.Repeat("x", 20_000)}}}, see: taken, was: "refused", is: "taken", reloads: 1,
	},
	{
		key: "large-client-header-buffers", before: "-", after: "2 2k", service: "echo",
		request: headgatetest.Request{Path: "/" + strings.Repeat("x", 5_000)}, see: taken, was: "taken", is: "refused", reloads: 1,
	},
	{
		key: "enable-underscores-in-headers", before: "-", after: "true", service: "echo",
		request: headgatetest.Request{Header: http.Header{"X_under": {"1"}}}, see: raw("X_under"), was: "", is: "1", reloads: 1,
	},
	{
		key: "ignore-invalid-headers", before: "-", after: "false", service: "echo",
		request: headgatetest.Request{Header: http.Header{"X.dot": {"1"}}}, see: raw("X.dot"), was: "", is: "1", reloads: 1,
	},
	{key: "http2-max-concurrent-streams", before: "-", after: "7", service: "echo", see: streams, was: "128", is: "7", reloads: 1},
}

// taken sees whether the header of a request is too long: by HTTP/2, NGINX ends the stream or the connection.
func taken(_ *keyFixture, v *keyVisit) string {
	switch s := v.ask().Status; {
	case s == http.StatusOK:
		return "taken"
	case v.request.HTTP2 && s == 0, s == http.StatusBadRequest, s == http.StatusRequestURITooLong:
		return "refused"
	default:
		return fmt.Sprint(s)
	}
}

// raw sees a header that the backend got, whose name has other characters than letters and hyphens.
func raw(name string) func(*keyFixture, *keyVisit) string {
	return func(_ *keyFixture, v *keyVisit) string {
		for got, values := range v.ask().Echo.Header {
			if strings.EqualFold(got, name) {
				return strings.Join(values, "|")
			}
		}
		return ""
	}
}

// streams sees how many requests at the same time the server allows over HTTP/2, in its first frame.
func streams(_ *keyFixture, v *keyVisit) string {
	connection, err := tls.Dial("tcp", headgatetest.Address(v.instance.HTTPS), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		return err.Error()
	}
	const (
		headerSize, settingSize = 9, 6
		settingsFrame           = 4
		maxConcurrentStreams    = 3
	)
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(connection, head); err != nil {
		return err.Error()
	}
	body := make([]byte, int(head[0])<<16|int(binary.BigEndian.Uint16(head[1:])))
	if _, err := io.ReadFull(connection, body); err != nil || head[3] != settingsFrame {
		return fmt.Sprintf("a frame of type %d: %v", head[3], err)
	}
	for ; len(body) >= settingSize; body = body[settingSize:] {
		if binary.BigEndian.Uint16(body) == maxConcurrentStreams {
			return fmt.Sprint(binary.BigEndian.Uint32(body[2:]))
		}
	}
	return "unbounded"
}
