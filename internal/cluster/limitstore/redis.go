package limitstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// An Address says where a store is, and how to get in.
type Address struct {
	// URL is redis://USER@HOST:PORT/DATABASE, or rediss:// with TLS.
	URL string
	// PasswordFile has the password. It is read for each connection. AuthorityFile has the
	// certificate authorities that the store's certificate may be of; without it, the system's.
	PasswordFile, AuthorityFile string
}

// String is the address as it may be logged.
func (a Address) String() string { return a.URL }

// A remote is the store as Store needs it.
type remote interface {
	// exchange writes what a replica has counted, and returns by key what others have, of the
	// counters and those before them.
	exchange(ctx context.Context, replica string, counters []counter) (map[string]int64, error)
	ping(ctx context.Context) error
	close()
}

// form says what the URL must be.
const form = "must be redis://HOST:PORT, or rediss:// with TLS, with USER@ before the host and /DATABASE, a number, behind the port where needed"

// Check reports what is wrong with an address.
func (a Address) Check() error {
	_, err := a.options()
	return err
}

// options are what a connection needs, but for the password, which may change.
type options struct {
	address, user string
	database      int
	tls           *tls.Config
}

func (a Address) options() (options, error) {
	parsed, err := url.Parse(a.URL)
	if err != nil || parsed.Scheme != "redis" && parsed.Scheme != "rediss" || parsed.Hostname() == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return options{}, errors.New(form)
	}
	if _, has := parsed.User.Password(); has {
		return options{}, errors.New("must have no password, which others could read: put it into a file")
	}
	o := options{address: net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "6379")), user: parsed.User.Username()}
	if text := strings.TrimPrefix(parsed.Path, "/"); text != "" {
		if o.database, err = strconv.Atoi(text); err != nil || o.database < 0 {
			return options{}, errors.New(form)
		}
	}
	if _, err := a.password(); err != nil {
		return options{}, err
	}
	if parsed.Scheme == "rediss" {
		o.tls, err = a.tls(parsed.Hostname())
	}
	return o, err
}

// password is empty where there is none.
func (a Address) password() (string, error) {
	if a.PasswordFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

func (a Address) tls(name string) (*tls.Config, error) {
	config := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	if a.AuthorityFile == "" {
		return config, nil
	}
	text, err := os.ReadFile(a.AuthorityFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authorities: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the certificate authorities: %s has no certificate in PEM", a.AuthorityFile)
	}
	return config, nil
}

// server is a store that speaks the protocol of Redis. Of several exchanges there is one at a time.
type server struct {
	address Address
	options options
	// connection is nil before the first exchange and after one that failed.
	connection redis.Conn
}

func connect(a Address) (*server, error) {
	o, err := a.options()
	return &server{address: a, options: o}, err
}

func (s *server) ping(ctx context.Context) error {
	return s.with(ctx, func(c redis.Conn) error {
		_, err := c.Do("PING")
		return err
	})
}

func (s *server) close() {
	if s.connection != nil {
		// There is nothing to do about a connection that can't be closed.
		_ = s.connection.Close()
		s.connection = nil
	}
}

// with uses the connection, which it makes if there is none. The store may have closed one that it
// had, so that a second attempt gets a new one.
func (s *server) with(ctx context.Context, use func(redis.Conn) error) error {
	if s.connection != nil && s.attempt(ctx, use) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.dial(ctx); err != nil {
		return err
	}
	return s.attempt(ctx, use)
}

// attempt closes the connection after an error, and when ctx ends.
func (s *server) attempt(ctx context.Context, use func(redis.Conn) error) error {
	connection := s.connection
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	err := use(connection)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		s.close()
	}
	return err
}

func (s *server) dial(ctx context.Context) error {
	password, err := s.address.password()
	if err != nil {
		return err
	}
	s.connection, err = redis.DialContext(ctx, "tcp", s.options.address,
		redis.DialUsername(s.options.user), redis.DialPassword(password), redis.DialDatabase(s.options.database),
		redis.DialUseTLS(s.options.tls != nil), redis.DialTLSConfig(s.options.tls),
		redis.DialTLSHandshakeTimeout(Timeout), redis.DialReadTimeout(Timeout), redis.DialWriteTimeout(Timeout))
	if err != nil {
		// Not nil, otherwise, in an interface.
		s.connection = nil
	}
	return err
}

// A counter is a hash in the store, with a field for each replica. A replica writes what it has
// counted in all, so that it may write it twice, and once more to a store that has lost it.
func (s *server) exchange(ctx context.Context, replica string, counters []counter) (map[string]int64, error) {
	others := make(map[string]int64, 2*len(counters))
	return others, s.with(ctx, func(c redis.Conn) error {
		for _, counter := range counters {
			if err := send(c, replica, counter); err != nil {
				return err
			}
		}
		if err := c.Flush(); err != nil {
			return err
		}
		for _, counter := range counters {
			if err := receive(c, replica, counter, others); err != nil {
				return err
			}
		}
		return nil
	})
}

// send puts what is to be done about a counter into the connection's buffer.
func send(c redis.Conn, replica string, counter counter) error {
	name := nameOf(counter.Key)
	return errors.Join(
		c.Send("HSET", name, replica, counter.Own),
		c.Send("EXPIRE", name, int(lifetime(counter).Seconds())),
		c.Send("HGETALL", name),
		c.Send("HGETALL", nameOf(counter.Before)),
	)
}

// receive reads the answers to send.
func receive(c redis.Conn, replica string, counter counter, others map[string]int64) error {
	for range 2 {
		if _, err := c.Receive(); err != nil {
			return err
		}
	}
	for _, key := range []string{counter.Key, counter.Before} {
		fields, err := redis.StringMap(c.Receive())
		if err != nil {
			return err
		}
		if n := sum(fields, replica); n > 0 {
			others[key] = n
		}
	}
	return nil
}

// sum adds up what all but one replica have counted. What is not a number counts nothing.
func sum(fields map[string]string, replica string) (total int64) {
	for name, text := range fields {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 && name != replica {
			total += n
		}
	}
	return total
}

// nameOf is the name of a counter in the store. What clients sent is not readable in it.
func nameOf(key string) string {
	const length = 16
	hash := sha256.Sum256([]byte(key))
	return "headgate:" + hex.EncodeToString(hash[:length])
}
