package option

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/cluster/limitstore"
)

// LimitStore are the flags of the store in which replicas count together.
type LimitStore struct{ Address limitstore.Address }

func (o *LimitStore) addLimitStoreFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Address.URL, "limit-store", "", "URL of the Redis or Valkey in which all replicas count for global-rate-limit: redis://USER@HOST:PORT/DATABASE, or rediss:// with TLS. Without it, the annotation has no effect")
	f.StringVar(&o.Address.PasswordFile, "limit-store-password-file", "", "file with the password for --limit-store, read for each connection")
	f.StringVar(&o.Address.AuthorityFile, "limit-store-certificate-authority", "", "file with the certificate authorities for --limit-store (default: those of the system)")
}

// checkLimitStore rejects an address that can't be right, and files that can't be read.
func (o *LimitStore) checkLimitStore() error {
	if o.Address.URL == "" {
		if o.Address.PasswordFile != "" || o.Address.AuthorityFile != "" {
			return errors.New("--limit-store-password-file and --limit-store-certificate-authority require --limit-store")
		}
		return nil
	}
	if err := o.Address.Check(); err != nil {
		return fmt.Errorf("--limit-store: %w", err)
	}
	return nil
}
