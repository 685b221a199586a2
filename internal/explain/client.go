package explain

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/address"
)

// explainClient finds out who asks, and by which scheme, as NGINX does.
func (x *explainer) explainClient() {
	settings := x.globals.Process.ClientAddress
	peers := fmt.Sprintf("%s%s", finding.ShortenList(strings.Split(settings.Trusted.String(), ",")), x.because(feature.TrustedPeers))
	c := &report.Client{}
	switch reads := !settings.For.IsZero() || settings.Forwarded; {
	case !reads && settings.ProxyProtocol:
		c.Why = "its address is that in the header of the PROXY protocol, from " + peers
	case !reads:
		return
	case !x.from.IsValid():
		c.Why = "headers that say who asks are believed from " + peers
	case !settings.Trusted.Has(x.from):
		c.Why = fmt.Sprintf("headers that say who asks are not believed: %s is not in %s", x.from, peers)
	default:
		x.believe(c, settings, peers)
	}
	if x.from.IsValid() {
		c.Address = x.from.String()
	}
	x.out.Client = c
}

// believe reads the headers of a trusted sender.
func (x *explainer) believe(c *report.Client, settings model.ClientAddress, peers string) {
	headers := prediction.Request{Headers: x.out.Request.Headers}
	c.Why = fmt.Sprintf("headers that say who asks are believed: %s is in %s", x.from, peers)
	if value, _ := headers.Header(plain(settings.For)); !settings.For.IsZero() && value != "" {
		if client := lastOther(x.from, value, settings.Trusted); client != x.from {
			c.Why += fmt.Sprintf("; %s is the last address in %s that is not", client, settings.For)
			x.from = client
		}
	}
	if value, _ := headers.Header("x_forwarded_proto"); settings.Forwarded {
		if found := firstScheme.FindStringSubmatch(value); found != nil {
			c.Scheme = found[1]
			if lower := strings.ToLower(c.Scheme); lower == "http" || lower == "https" {
				c.Scheme = lower
			}
			c.Why += "; the scheme is that of X-Forwarded-Proto"
		}
	}
	if value, _ := headers.Header("x_forwarded_host"); settings.Forwarded {
		if found := firstHost.FindStringSubmatch(value); found != nil {
			x.asked = found[1]
		}
	}
}

// plain is a header's name as NGINX's variables have it.
func plain(name model.HeaderName) string { return strings.TrimPrefix(name.Variable(), "http_") }

// firstScheme is as in nginx.conf.
var firstScheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*) *(?:,|$)`)

// firstHost is as in nginx.conf.
var firstHost = regexp.MustCompile(`^([A-Za-z0-9._:\[\]-]+) *(?:,|$)`)

// asks is the scheme by which the client asks over a connection with a scheme.
func (x *explainer) asks(scheme string) string {
	if x.out.Client == nil {
		return scheme
	}
	return cmp.Or(x.out.Client.Scheme, scheme)
}

// getsStatus reports whether the client may see NGINX's status.
func (x *explainer) getsStatus() bool {
	list, err := address.ParseNetworks(x.globals.Process.StatusClients.Text)
	if x.globals.Process.StatusClients.Text == "" {
		return x.from.IsLoopback()
	}
	return err == nil && list.Has(x.from)
}
