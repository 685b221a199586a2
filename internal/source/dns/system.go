package dns

import (
	"bytes"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// hostsTTL is how long an address from /etc/hosts is used before the file is
// read again.
const hostsTTL = 30 * time.Second

// read reads a file; one that can't be read counts as empty.
func read(path string) []byte {
	text, _ := os.ReadFile(path)
	return text
}

// config reads resolv.conf, with the limits of the C library. Without a server, it
// is the one on this machine.
func (s *Source) config() *dns.ClientConfig {
	config, err := dns.ClientConfigFromReader(bytes.NewReader(read(s.settings.ResolvConf)))
	if err != nil {
		// A line is too long: the whole file is ignored.
		config, _ = dns.ClientConfigFromReader(strings.NewReader(""))
	}
	if len(config.Servers) == 0 {
		config.Servers = []string{"127.0.0.1"}
	}
	config.Servers = config.Servers[:min(len(config.Servers), maxServers)]
	config.Attempts = min(config.Attempts, maxAttempts)
	config.Timeout = min(config.Timeout, maxTimeout)
	return config
}

// hostsAddresses are the addresses of a name in a text in the format of hosts(5):
// those of IPv4, or if there are none those of IPv6.
func hostsAddresses(text []byte, name string) []netip.Addr {
	name = strings.TrimSuffix(name, ".")
	var v4, v6 []netip.Addr
	for line := range bytes.Lines(text) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		fields := strings.Fields(string(line))
		same := func(one string) bool { return strings.EqualFold(strings.TrimSuffix(one, "."), name) }
		if len(fields) < 2 || !slices.ContainsFunc(fields[1:], same) {
			continue
		}
		address, err := netip.ParseAddr(fields[0])
		switch {
		case err != nil || address.Zone() != "":
		case address.Unmap().Is4():
			v4 = append(v4, address.Unmap())
		default:
			v6 = append(v6, address)
		}
	}
	if len(v4) > 0 {
		return v4
	}
	return v6
}
