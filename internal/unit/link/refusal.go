package link

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A control that does not trust an edge's certificate any more says so in two places: on a stream that
// is open, or as the alert that ends a connection. With TLS 1.3 that alert comes after the handshake.

// refused has Run get another certificate.
func (c *Client) refused() {
	select {
	case c.refusals <- struct{}{}:
	default:
	}
}

// lasts waits until the certificate is to be renewed, and reports false if the control refuses it before.
func (c *Client) lasts(ctx context.Context) bool {
	select {
	case <-c.refusals:
		// That was an older one, or else the control says it again.
	default:
	}
	select {
	case <-time.After(c.untilRenewal()):
		return true
	case <-ctx.Done():
		return true
	case <-c.refusals:
		c.Log.Warn("the control refuses the certificate of the edge", "control", c.Address, "effect", "the edge gets another one")
		return false
	}
}

// notice notes of a stream that the control refuses the certificate.
func (c *Client) notice(ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, description, connection, method, options...)
	if err != nil {
		return nil, c.noticed(err)
	}
	return &noticing{stream, c}, nil
}

// noticed returns an error of a stream.
func (c *Client) noticed(err error) error {
	if status.Code(err) == codes.Unauthenticated {
		c.refused()
	}
	return err
}

// A noticing stream has its Client know that it was refused.
type noticing struct {
	grpc.ClientStream
	of *Client
}

func (n *noticing) RecvMsg(message any) error { return n.of.noticed(n.ClientStream.RecvMsg(message)) }

// remoteError is the operation that package tls names in errors that are alerts of the other side.
const remoteError = "remote error"

// An alerted connection has its handshake behind it.
type alerted struct {
	net.Conn
	of *Client
}

// Read has the Client know of an alert.
func (a *alerted) Read(buffer []byte) (int, error) {
	n, err := a.Conn.Read(buffer)
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == remoteError {
		a.of.refused()
	}
	return n, err
}
