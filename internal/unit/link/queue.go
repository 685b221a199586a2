package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// A queue is the listener of a server that gets connections after their handshake. K is who they are of.
type queue[K comparable] struct {
	address net.Addr
	most    int64
	live    atomic.Int64
	shares  shares[K]
	waiting chan net.Conn
	closed  chan struct{}
	closing sync.Once
}

func newQueue[K comparable](most int64) *queue[K] {
	return &queue[K]{most: most, waiting: make(chan net.Conn), closed: make(chan struct{})}
}

// put hands over a connection, or closes it if there are too many, or more than most of the same.
func (q *queue[K]) put(connection *open, of K, most int64) {
	if !q.shares.try(of, most) {
		connection.left = func() {}
		connection.Close()
		return
	}
	connection.left = func() {
		q.live.Add(-1)
		q.shares.release(of)
	}
	if q.live.Add(1) > q.most {
		connection.Close()
		return
	}
	select {
	case q.waiting <- connection:
	case <-q.closed:
		connection.Close()
	}
}

func (q *queue[K]) Accept() (net.Conn, error) {
	select {
	case connection := <-q.waiting:
		return connection, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *queue[K]) close() { q.closing.Do(func() { close(q.closed) }) }

func (q *queue[K]) Close() error {
	q.close()
	return nil
}

func (q *queue[K]) Addr() net.Addr { return q.address }

// An open connection has its handshake behind it. It counts until it is closed.
type open struct {
	net.Conn
	state tls.ConnectionState
	// ends ends it with its certificate; nil without one.
	ends *time.Timer
	// left is called once it is closed.
	left   func()
	closed atomic.Bool
}

func (o *open) Close() error {
	if !o.closed.Swap(true) {
		o.left()
		if o.ends != nil {
			o.ends.Stop()
		}
	}
	return o.Conn.Close()
}

// handshaken passes to gRPC what the handshake of an open connection has found.
type handshaken struct{}

func (handshaken) ServerHandshake(connection net.Conn) (net.Conn, credentials.AuthInfo, error) {
	made, ok := connection.(*open)
	if !ok {
		return nil, nil, errors.New("the connection had no handshake")
	}
	return made, credentials.TLSInfo{State: made.state, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

func (handshaken) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a server opens no connections")
}

func (handshaken) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (h handshaken) Clone() credentials.TransportCredentials { return h }

func (handshaken) OverrideServerName(string) error { return nil }
