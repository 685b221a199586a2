package check

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/protobuf/encoding/protowire"
)

// The health service of gRPC: https://github.com/grpc/grpc/blob/master/doc/health-checking.md
const (
	method = "/grpc.health.v1.Health/Check"
	// serviceField is that of a request, statusField that of an answer.
	serviceField, statusField = 1, 1
	// framePrefix is the length of what stands before a message: whether it is compressed,
	// and its length.
	framePrefix = 5
)

// A status is what the health service answers.
type status uint64

const serving status = 1

func (s status) String() string {
	names := [...]string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}
	if s < status(len(names)) {
		return names[s]
	}
	return fmt.Sprint(uint64(s))
}

// askGRPC wants the status SERVING of a service.
func (p *prober) askGRPC(ctx context.Context, at *url.URL, service string) error {
	at.Path = method
	header := http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	response, err := p.do(ctx, p.http2, http.MethodPost, at, header, bytes.NewReader(question(service)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusal(fmt.Sprintf("status %d", response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return err
	}
	// Without a message, the trailers are the header.
	code := response.Trailer.Get("Grpc-Status")
	if code == "" {
		code = response.Header.Get("Grpc-Status")
	}
	switch {
	case code == "12":
		return refusal("the server has no health service (grpc-status 12)")
	case code == "5":
		return refusal("the server does not know the service (grpc-status 5)")
	case code != "0":
		return refusal("grpc-status is not 0")
	}
	switch is, err := readAnswer(body); {
	case err != nil:
		return err
	case is != serving:
		return refusal(is.String())
	}
	return nil
}

// question is a HealthCheckRequest.
func question(service string) []byte {
	frame := make([]byte, framePrefix, framePrefix+len(service)+4)
	if service != "" {
		frame = protowire.AppendTag(frame, serviceField, protowire.BytesType)
		frame = protowire.AppendString(frame, service)
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-framePrefix))
	return frame
}

const errNoAnswer refusal = "the answer is not one of the health service"

// readAnswer reads the status of a HealthCheckResponse.
func readAnswer(frame []byte) (status, error) {
	if len(frame) < framePrefix || frame[0] != 0 || uint64(binary.BigEndian.Uint32(frame[1:])) != uint64(len(frame)-framePrefix) {
		return 0, errNoAnswer
	}
	var is status
	for rest := frame[framePrefix:]; len(rest) > 0; {
		number, kind, length := protowire.ConsumeTag(rest)
		if length < 0 {
			return 0, errNoAnswer
		}
		rest = rest[length:]
		if number == statusField && kind == protowire.VarintType {
			value, length := protowire.ConsumeVarint(rest)
			if length < 0 {
				return 0, errNoAnswer
			}
			is, rest = status(value), rest[length:]
			continue
		}
		if length = protowire.ConsumeFieldValue(number, kind, rest); length < 0 {
			return 0, errNoAnswer
		}
		rest = rest[length:]
	}
	return is, nil
}
