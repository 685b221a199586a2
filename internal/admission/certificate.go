package admission

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// A certificate is read from files, and read again once they change: before each handshake
// it looks at their times, so that there is nothing to watch.
type certificate struct {
	certificateFile, keyFile string
	log                      *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	// seen are the files that loaded, or an error, is from.
	seen [2]fs.FileInfo
	err  error
}

var errNoCertificate = errors.New("the admission webhook has no certificate")

// get returns the last certificate that could be read.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.refresh()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded == nil {
		return nil, errNoCertificate
	}
	return c.loaded, nil
}

// refresh reads the files if they are others than before. Between the changes of two files
// they may not fit: then the last certificate stays.
func (c *certificate) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.stat()
	if err == nil && same(now[0], c.seen[0]) && same(now[1], c.seen[1]) {
		return
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certificateFile, c.keyFile)
	}
	c.seen = now
	if err != nil {
		if c.err == nil || c.err.Error() != err.Error() {
			c.log.Error("the certificate of the admission webhook can't be read", "error", err, "effect", effect(c.loaded))
		}
		c.err = err
		return
	}
	if c.loaded != nil || c.err != nil {
		c.log.Info("the certificate of the admission webhook was read again", "file", c.certificateFile)
	}
	c.loaded, c.err = &pair, nil
}

func (c *certificate) stat() (files [2]fs.FileInfo, err error) {
	for i, name := range []string{c.certificateFile, c.keyFile} {
		if files[i], err = os.Stat(name); err != nil {
			return [2]fs.FileInfo{}, fmt.Errorf("look at the file: %w", err)
		}
	}
	return files, nil
}

func same(a, b fs.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func effect(loaded *tls.Certificate) string {
	if loaded == nil {
		return "API servers can't connect to the webhook"
	}
	return "the last certificate is used"
}
