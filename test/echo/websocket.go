package echo

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The opcodes of RFC 6455 with a special meaning for the echo. All others are
// data.
const (
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// maxMessage bounds a frame's payload, in bytes.
const maxMessage = 1 << 20

// A frame is one WebSocket frame, unmasked.
type frame struct {
	first   byte // the FIN bit and the opcode
	payload []byte
}

func (f frame) opcode() byte { return f.first & 0x0f }

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && r.Header.Get("Sec-WebSocket-Key") != ""
}

func serveWebSocket(w http.ResponseWriter, r *http.Request) {
	conn, stream, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "WebSockets need HTTP/1.1", http.StatusBadRequest)
		return
	}
	defer conn.Close()
	fmt.Fprintf(stream, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		accept(r.Header.Get("Sec-WebSocket-Key")))
	// On an error the client sees a closed connection; that is enough.
	_ = echoFrames(stream)
}

// accept is the server's answer to the client's key (RFC 6455, section 4.2.2).
func accept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// echoFrames sends frames back until one says close or the connection ends.
func echoFrames(stream *bufio.ReadWriter) error {
	for {
		if err := stream.Flush(); err != nil {
			return err
		}
		received, err := readFrame(stream.Reader)
		if err != nil {
			return err
		}
		switch received.opcode() {
		case opPong:
			continue
		case opPing:
			received.first = 0x80 | opPong
		}
		if err := writeFrame(stream.Writer, received); err != nil {
			return err
		}
		if received.opcode() == opClose {
			return stream.Flush()
		}
	}
}

func readFrame(r io.Reader) (frame, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		var long [2]byte
		if _, err := io.ReadFull(r, long[:]); err != nil {
			return frame{}, err
		}
		size = uint64(binary.BigEndian.Uint16(long[:]))
	case 127:
		var long [8]byte
		if _, err := io.ReadFull(r, long[:]); err != nil {
			return frame{}, err
		}
		size = binary.BigEndian.Uint64(long[:])
	}
	if size > maxMessage {
		return frame{}, errors.New("frame too large")
	}
	if head[1]&0x80 == 0 {
		return frame{}, errors.New("frame of a client without mask")
	}
	var mask [4]byte
	if _, err := io.ReadFull(r, mask[:]); err != nil {
		return frame{}, err
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return frame{}, err
	}
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return frame{first: head[0], payload: payload}, nil
}

func writeFrame(w io.Writer, f frame) error {
	head := []byte{f.first}
	switch size := len(f.payload); {
	case size < 126:
		head = append(head, byte(size))
	case size < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(size))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(size))
	}
	_, err := w.Write(append(head, f.payload...))
	return err
}
