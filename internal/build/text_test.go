package build_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

func globalsText(g model.Globals) string {
	text := fmt.Sprintf("workers %d\ndefault profile: buffering %v\n", g.Process.Workers, g.Default.Value("buffering") == 1)
	for _, p := range g.Policies {
		text += fmt.Sprintf("policy %s %+v\n", p.Feature, p.Value)
	}
	return text
}

func hostText(h model.Host) string {
	var text strings.Builder
	for _, p := range h.TLS {
		fmt.Fprintf(&text, "TLS: %s %+v\n", p.Feature, p.Value)
	}
	for _, c := range h.Contents {
		fmt.Fprintf(&text, "content %.8s\n", c.Name)
	}
	for _, r := range h.Routes {
		fmt.Fprintf(&text, "%s %s", r.Kind, r.Path)
		if r.Slash {
			text.WriteString(" (written with a slash)")
		}
		if r.Backend == "" {
			text.WriteString(" -> built-in default backend")
		} else {
			text.WriteString(" -> " + r.Backend)
		}
		if r.Origin != (model.Origin{}) {
			text.WriteString(", from " + r.Origin.Namespace + "/" + r.Origin.Ingress)
		}
		if r.Fallback != "" {
			text.WriteString(", else " + r.Fallback)
		}
		if r.Denied {
			text.WriteString(", denied")
		}
		if r.Profile.Value("buffering") == 1 {
			text.WriteString(", buffering")
		}
		for _, p := range r.Policies {
			fmt.Fprintf(&text, ", %s %+v", p.Feature, p.Value)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// defaultCertificateText shows the certificate as nameText does.
func defaultCertificateText(certificate *model.Certificate) string {
	if certificate == nil {
		return "generated\n"
	}
	return nameText(model.Name{Host: model.DefaultHost, Certificate: certificate.Hash}, certificate)
}

// nameText shows a certificate by its names: keys and hashes differ from run
// to run.
func nameText(n model.Name, certificate *model.Certificate) string {
	text := "host " + n.Host
	if n.Owner != "" {
		text += ", of " + n.Owner
	}
	if n.HasTLS {
		text += ", secured"
	}
	if (certificate == nil) != (n.Certificate == "") || certificate != nil && n.Certificate != certificate.Hash {
		return text + ", BROKEN: certificate and hash differ\n"
	}
	if certificate == nil {
		return text + "\n"
	}
	rest, count := certificate.Chain, 0
	for block, more := pem.Decode(rest); block != nil; block, more = pem.Decode(more) {
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return text + ", BROKEN: " + err.Error() + "\n"
		}
		if count++; count == 1 {
			text += fmt.Sprintf(", certificate %v", append(parsed.DNSNames, "CN="+parsed.Subject.CommonName))
		} else {
			text += ", then CN=" + parsed.Subject.CommonName
		}
	}
	return text + "\n"
}

func backendText(b model.Backend) string {
	if len(b.Endpoints) == 0 {
		return "no endpoints\n"
	}
	var text strings.Builder
	for _, e := range b.Endpoints {
		text.WriteString(e.String() + "\n")
	}
	for _, e := range b.Terminating {
		text.WriteString(e.String() + ", for its sessions\n")
	}
	if b.Check != (model.HealthCheck{}) {
		fmt.Fprintf(&text, "checked: %v\nunhealthy: %v\n", b.Health.Checked, b.Health.Unhealthy)
	}
	return text.String()
}

// patternsText shows how many certificates come with the patterns.
func patternsText(p model.NamePatterns, certificates []model.Certificate) string {
	text := ""
	for _, n := range slices.Concat(p.LeadingWildcards, p.TrailingWildcards, p.Regexes) {
		text += n.Name + " -> " + n.Host
		if n.HasTLS {
			text += ", secured"
		}
		text += "\n"
	}
	return fmt.Sprintf("%swith %d certificates\n", text, len(certificates))
}
