package main

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/source/pki"
)

// certificateOptions are what the flags say of certificates.
type certificateOptions struct {
	completeChains bool
}

func (o *certificateOptions) addCertificateFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.completeChains, "enable-ssl-chain-completion", false, "fetch issuers' certificates that tls.crt lacks from where the certificates say")
}

// authorities adds what is fetched from certificate authorities. A folder is
// written by who runs Headgate, on whose own machine a responder may be.
func (o options) authorities(f from, log *slog.Logger) from {
	settings := pki.Settings{AllowLocal: o.manifestsDir != "", Log: log}
	staples := pki.NewOCSPResponses(settings)
	f.run, f.want.Staples = controller.Together(f.run, staples.Run), staples.Subscribe
	if o.completeChains {
		issuers := pki.NewIssuers(settings)
		f.run, f.want.Issuers = controller.Together(f.run, issuers.Run), issuers.Subscribe
	}
	return f
}
