package model

import (
	"net/netip"
	"strconv"
	"strings"
)

// A Call is a request of Headgate itself to another service, for the routes of an
// Ingress.
type Call struct {
	// Name identifies the call among those of a request.
	Name CallName
	// Secure uses https.
	Secure bool
	// Host is a DNS name in lower case, or an address, which has brackets if it
	// is of IPv6. It is empty where SameHost is set.
	Host string
	// SameHost calls the host that the client asked for.
	SameHost bool
	// Port is 1 to 65535, the scheme's own if none was written.
	Port uint16
	// Path is that of the URL, without the query; empty if it depends on the request.
	Path string
}

// A CallName identifies a call among those of a request: each has a backend and
// variables of its own. No two features use the same name.
type CallName string

// The names: the call of an auth check (see Check), and the copy of a request.
const (
	CheckCall  CallName = "check"
	MirrorCall CallName = "mirror"
)

// OwnPort reports whether the port is the scheme's own.
func (c Call) OwnPort() bool {
	return c.Secure && c.Port == 443 || !c.Secure && c.Port == 80
}

// Backend is the key of the backend that has the endpoints of the call's Host.
// The name of a Service in the cluster, "NAME.NAMESPACE.svc" or that with
// ".cluster.local" behind it, leads to the Service's own endpoints.
func (c Call) Backend() string {
	port := strconv.Itoa(int(c.Port))
	labels := strings.Split(strings.TrimSuffix(strings.TrimSuffix(c.Host, "."), ".cluster.local"), ".")
	if len(labels) == 3 && labels[2] == "svc" {
		return BackendKey(labels[1], labels[0], port)
	}
	return BackendKey(NoNamespace, c.Host, port)
}

// InCluster reports whether the Host is a name that cluster DNS gives to Services and
// pods. Addresses and all other names are outside.
func (c Call) InCluster() bool {
	name := "." + strings.TrimSuffix(c.Host, ".")
	return strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, ".cluster.local")
}

// NoNamespace is the namespace in the key of a backend without a Service:
// its name is a DNS name or an address, as Call.Host has it.
const NoNamespace = ""

// Address is the address that a Call.Host is, false if it is a name.
func Address(host string) (address netip.Addr, ok bool) {
	inner, opened := strings.CutPrefix(host, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	address, err := netip.ParseAddr(inner)
	return address.Unmap(), err == nil && address.Zone() == "" && opened == closed && address.Is6() == opened
}
