package dataplane_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/headgate/headgate/internal/headgatetest"
)

// coreKeys are about HTTP itself.
var coreKeys = []keyCase{
	{key: "http2-max-concurrent-streams", before: "-", after: "7", service: "echo", see: streams, was: "128", is: "7", reloads: 1},
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
