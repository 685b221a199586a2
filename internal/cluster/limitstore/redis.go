package limitstore

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
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

func (a Address) options() (*redis.Options, error) {
	parsed, err := url.Parse(a.URL)
	if err != nil || parsed.Scheme != "redis" && parsed.Scheme != "rediss" || parsed.Hostname() == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, errors.New(form)
	}
	if _, has := parsed.User.Password(); has {
		return nil, errors.New("must have no password, which others could read: put it into a file")
	}
	o, err := redis.ParseURL(a.URL)
	if err != nil {
		return nil, errors.New(form)
	}
	if a.PasswordFile != "" {
		user := o.Username
		o.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := a.password()
			return user, password, err
		}
		if _, err := a.password(); err != nil {
			return nil, err
		}
	}
	if o.TLSConfig != nil && a.AuthorityFile != "" {
		if o.TLSConfig, err = a.tls(o.TLSConfig); err != nil {
			return nil, err
		}
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = Timeout, Timeout, Timeout, true
	// Store retries, and there is one exchange at a time.
	o.MaxRetries, o.DialerRetries, o.PoolSize = -1, 1, 1
	// Nothing but what the first versions of Redis have, too.
	o.Protocol, o.DisableIdentity = 2, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

func (a Address) password() (string, error) {
	text, err := os.ReadFile(a.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

func (a Address) tls(config *tls.Config) (*tls.Config, error) {
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

// server is a store that speaks the protocol of Redis.
type server struct{ client *redis.Client }

func connect(a Address) (server, error) {
	o, err := a.options()
	if err != nil {
		return server{}, err
	}
	// Errors are returned as well: the library's log would repeat them each second.
	logging.Disable()
	return server{redis.NewClient(o)}, nil
}

func (s server) ping(ctx context.Context) error { return s.client.Ping(ctx).Err() }

// There is nothing to do about a connection that can't be closed.
func (s server) close() { _ = s.client.Close() }

// A counter is a hash in the store, with a field for each replica. A replica writes what it has
// counted in all, so that it may write it twice, and once more to a store that has lost it.
func (s server) exchange(ctx context.Context, replica string, counters []counter) (map[string]int64, error) {
	pipe := s.client.Pipeline()
	read := make(map[string]*redis.MapStringStringCmd, 2*len(counters))
	for _, c := range counters {
		name := nameOf(c.Key)
		pipe.HSet(ctx, name, replica, c.Own)
		pipe.Expire(ctx, name, lifetime(c))
		read[c.Key], read[c.Before] = pipe.HGetAll(ctx, name), pipe.HGetAll(ctx, nameOf(c.Before))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	others := make(map[string]int64, len(read))
	for key, fields := range read {
		if n := sum(fields.Val(), replica); n > 0 {
			others[key] = n
		}
	}
	return others, nil
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
