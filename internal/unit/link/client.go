package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/headgate/headgate/internal/guard/pemfile"
)

const (
	// renewTimeout is how long it may take to get a certificate.
	renewTimeout = 30 * time.Second
	// minRetry and maxRetry are the times after which it is tried again: twice as long each time.
	minRetry = time.Second
	maxRetry = time.Minute
	// fileInterval is the time between two looks at the files of a certificate.
	fileInterval = 10 * time.Second
	// minReconnect and maxReconnect are the shortest and the longest time between two attempts to connect. gRPC's way to
	// have the next one at once is not safe: it reads the connections while others are made.
	minReconnect = 100 * time.Millisecond
	maxReconnect = 2 * time.Second
)

// ClientSettings are the options of a Client.
type ClientSettings struct {
	// Address is the control's, HOST:PORT.
	Address string
	// CAFile has the authorities of the control's certificate. It is read again when it changes.
	CAFile string
	// TokenFile has the token for which the edge gets its certificate. Without it, CertificateFile and
	// KeyFile are the certificate. All are PEM files, which are read again.
	TokenFile                string
	CertificateFile, KeyFile string
	Log                      *slog.Logger
}

// A Client connects an edge to its control. It gets the edge a certificate, whose key is in memory
// alone, and renews it. Connections that show an older one are closed.
type Client struct {
	ClientSettings
	authorities *pemfile.Group[[]*x509.Certificate]
	// files are the certificate, nil if it is got for a token.
	files      *pemfile.Group[*tls.Certificate]
	connection *grpc.ClientConn
	// refusals has an entry if the control refuses the certificate.
	refusals chan struct{}
	// retry is minRetry, and look fileInterval; others in tests.
	retry, look time.Duration

	mu sync.Mutex
	// own is the newest certificate that the edge got, nil without any.
	own *tls.Certificate
	// problem is why there is no newer one.
	problem error
	// connections are open.
	connections map[*tracked]bool
	// lacking are the authorities, in PEM, that the log said to be missing in CAFile.
	lacking string
}

// NewClient makes a Client, which does nothing before Run.
func NewClient(s ClientSettings) (*Client, error) {
	const without = "the edge can't connect to the control"
	c := &Client{
		ClientSettings: s, retry: minRetry, look: fileInterval, connections: map[*tracked]bool{}, refusals: make(chan struct{}, 1),
		authorities: authorityFile(s.Log, "the file with the authorities of the control", without, s.CAFile),
	}
	if s.TokenFile == "" {
		c.files = pemfile.Pair(s.Log, "the certificate of the edge", without, s.CertificateFile, s.KeyFile)
	}
	var err error
	c.connection, err = c.open(c.certificate, grpc.WithContextDialer(c.dial), grpc.WithStreamInterceptor(c.notice))
	return c, err
}

// Connection is the connection to the control. As long as the edge has no certificate, requests fail
// with the reason.
func (c *Client) Connection() *grpc.ClientConn { return c.connection }

// Err is why the edge has no certificate that it could show, nil if it has one.
func (c *Client) Err() error {
	_, err := c.certificate()
	return err
}

// Close closes the connection.
func (c *Client) Close() error { return c.connection.Close() }

// Run keeps the certificate until ctx ends: it is renewed before its end, and once the control refuses it.
func (c *Client) Run(ctx context.Context) {
	if c.files != nil {
		for ctx.Err() == nil {
			c.follow()
			wait(ctx, c.look)
		}
		return
	}
	pause := c.retry
	for ctx.Err() == nil {
		began := time.Now()
		err := c.renew(ctx)
		if err == nil && c.lasts(ctx) {
			pause = c.retry
			continue
		}
		if err != nil && ctx.Err() == nil {
			c.report(err)
		}
		// One control may refuse what another one signs: then the pauses grow too.
		if err == nil && time.Since(began) > maxRetry {
			pause = c.retry
		}
		wait(ctx, pause/2+rand.N(pause/2+1))
		pause = min(2*pause, maxRetry)
	}
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, span time.Duration) {
	select {
	case <-time.After(span):
	case <-ctx.Done():
	}
}

// report keeps an error, and logs it unless it is the last one.
func (c *Client) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.problem != nil && c.problem.Error() == err.Error() {
		return
	}
	c.problem = err
	effect := "units do not change"
	if c.own != nil && time.Now().Before(c.own.Leaf.NotAfter) {
		effect = "its certificate is used until " + stamp(c.own.Leaf.NotAfter)
	}
	c.Log.Error("the edge gets no certificate", "error", err, "effect", effect)
}

// untilRenewal is the time until two thirds of the certificate's life are over, or a bit less.
func (c *Client) untilRenewal() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	later := 2 * time.Until(c.own.Leaf.NotAfter) / 3
	// Not all at once: edges may have started at the same time.
	return max(c.retry, later-rand.N(max(later/10, 1)))
}

// certificate is what the edge shows.
func (c *Client) certificate() (*tls.Certificate, error) {
	if c.files != nil {
		return c.files.Get()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.own == nil && c.problem == nil:
		return nil, errors.New("the edge has no certificate yet")
	case c.own == nil:
		return nil, c.problem
	case time.Now().After(c.own.Leaf.NotAfter):
		return nil, fmt.Errorf("the certificate of the edge has expired at %s: %w", stamp(c.own.Leaf.NotAfter), cmp.Or(c.problem, errors.New("it is not renewed yet")))
	}
	return c.own, nil
}

// follow takes note of a certificate in files.
func (c *Client) follow() {
	now, err := c.files.Get()
	if err != nil {
		return
	}
	c.mu.Lock()
	changed := c.own != nil && !c.own.Leaf.Equal(now.Leaf)
	c.own = now
	c.mu.Unlock()
	if changed {
		c.reconnect()
	}
}

// use has connections show a certificate from now on, and closes those that show an older one.
func (c *Client) use(own *tls.Certificate) {
	c.mu.Lock()
	c.own, c.problem = own, nil
	older := slices.Collect(maps.Keys(c.connections))
	c.mu.Unlock()
	c.close(older)
}

// reconnect closes all connections: each shows one certificate as long as it lives.
func (c *Client) reconnect() {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.connections))
	c.mu.Unlock()
	c.close(all)
}

func (c *Client) close(connections []*tracked) {
	for _, connection := range connections {
		connection.Close()
	}
}

// dial opens a connection that reconnect closes.
func (c *Client) dial(ctx context.Context, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	made := &tracked{connection, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connections[made] = true
	return made, nil
}

// A tracked connection is known to the Client until it is closed.
type tracked struct {
	net.Conn
	of *Client
}

func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.connections, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}

// open makes a connection that shows certificates, or none if show is nil.
func (c *Client) open(show func() (*tls.Certificate, error), options ...grpc.DialOption) (*grpc.ClientConn, error) {
	often := backoff.DefaultConfig
	often.BaseDelay, often.MaxDelay = minReconnect, maxReconnect
	// The address is looked up at each attempt, and no proxy comes in between.
	connection, err := grpc.NewClient("passthrough:///"+c.Address, append(options,
		grpc.WithTransportCredentials(current{func() (*tls.Config, error) { return c.config(show) }}), grpc.WithAuthority(ServerName), grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: often, MinConnectTimeout: handshakeTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout}), grpc.WithDisableServiceConfig(),
		grpc.WithStaticStreamWindowSize(controlWindow), grpc.WithStaticConnWindowSize(2*controlWindow),
	)...)
	if err != nil {
		return nil, fmt.Errorf("connect to the control at %s: %w", c.Address, err)
	}
	return connection, nil
}

// config is that of one handshake.
func (c *Client) config(show func() (*tls.Certificate, error)) (*tls.Config, error) {
	trusted, err := c.authorities.Get()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpn}, ServerName: ServerName, RootCAs: Pool(trusted...),
		VerifyConnection: func(state tls.ConnectionState) error { return checkServer(state.PeerCertificates[0]) },
	}
	if show == nil {
		return config, nil
	}
	shown, err := show()
	if err != nil {
		return nil, err
	}
	// Also if the control names other authorities: it says what it refuses.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown, nil }
	return config, nil
}

// current are credentials whose settings are made for each handshake.
type current struct {
	config func() (*tls.Config, error)
}

func (c current) ClientHandshake(ctx context.Context, _ string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := c.config()
	if err != nil {
		return nil, nil, err
	}
	connection, info, err := credentials.NewTLS(config).ClientHandshake(ctx, ServerName, raw)
	if err != nil {
		return nil, nil, err
	}
	// Those that only ask for a certificate are not tracked.
	if known, ok := raw.(*tracked); ok {
		connection = &alerted{connection, known.of}
	}
	return connection, info, nil
}

func (current) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("an edge takes no connections")
}

func (current) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (c current) Clone() credentials.TransportCredentials { return c }

func (current) OverrideServerName(string) error { return nil }
