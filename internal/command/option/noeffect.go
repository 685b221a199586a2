package option

import (
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
)

// withoutEffect begins the usage of flags that are accepted without effect. A reason follows.
const withoutEffect = "has no effect"

// addFlagsWithoutEffect declares the flags of ingress-nginx that can't have an effect in
// Headgate, so that a Deployment for ingress-nginx starts.
func addFlagsWithoutEffect(f *pflag.FlagSet) {
	f.Bool("enable-annotation-validation", true, withoutEffect+": values are always parsed, since they are data and never become part of nginx.conf; what is rejected has no meaning that could be applied")
	f.Int("dynamic-configuration-retries", 15, withoutEffect+": a push that fails is repeated until it succeeds, at the latest every 5 s")
	f.Duration("sync-period", 0, withoutEffect+": what is served depends only on the objects, so applying the same ones again changes nothing; after an interruption, they are listed again")
	f.String("internal-logger-address", "127.0.0.1:11514", withoutEffect+": NGINX runs in no chroot, and writes its logs to standard output and standard error without syslog")
	f.Int("stream-port", 10247, withoutEffect+", but TCP and UDP services can't have the port: they are configured without one")
	f.Bool("skip_log_headers", false, withoutEffect+": log files have no header")
}

// HasNoEffect reports whether a flag is accepted without effect.
func HasNoEffect(flag *pflag.Flag) bool {
	return strings.HasPrefix(flag.Usage, withoutEffect)
}

// WarnWithoutEffect logs the flags that have another value than their default, and no effect.
func WarnWithoutEffect(f *pflag.FlagSet, log *slog.Logger) {
	f.Visit(func(flag *pflag.Flag) {
		if HasNoEffect(flag) && flag.Value.String() != flag.DefValue {
			log.Warn("--" + flag.Name + " " + flag.Usage)
		}
	})
}
