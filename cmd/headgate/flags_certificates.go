package main

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/source/pki"
)

// certificateOptions are the flags about certificates.
type certificateOptions struct {
	completeChains bool
}

func (o *certificateOptions) addCertificateFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.completeChains, "enable-ssl-chain-completion", false, "fetch issuers' certificates that are missing in tls.crt from the URLs in the certificates")
}

// authorities adds sources for certificate authorities. The administrator writes a
// folder, so its certificates may name a responder on the same machine.
func (o options) authorities(f from, log *slog.Logger) from {
	settings := pki.Settings{AllowLocal: o.manifestsDir != "", Log: log}
	responses := pki.NewOCSPResponses(settings)
	f.run, f.want.OCSPResponses = controller.MergeSources(f.run, responses.Run), responses.Subscribe
	if o.completeChains {
		issuers := pki.NewIssuers(settings)
		f.run, f.want.Issuers = controller.MergeSources(f.run, issuers.Run), issuers.Subscribe
	}
	return f
}
