package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// TLS is the settings of the NGINX process for TLS connections.
type TLS struct {
	Versions TLSVersions
	// Ciphers are for TLS 1.2 and before, in the server's order. If there are
	// none, the TLS library's own are used, in the client's order.
	Ciphers Ciphers
	Curves  Curves
	// SessionCache is the size in bytes of the memory for sessions, 0 for none.
	SessionCache int64
	// SessionTimeout is how long a session may be resumed, in whole seconds.
	// Without SessionCache it is NGINX's own.
	SessionTimeout time.Duration
	// Tickets gives sessions to clients to keep.
	Tickets bool
	// TicketKeys are what tickets are encrypted with, by the first one, and may be encrypted
	// with. If there are none, NGINX makes one at each reload.
	TicketKeys TicketKeys
	// DHParam are the parameters of ciphers that begin with DHE, as PEM. Without a name there are none.
	DHParam Content
	// BufferSize is the size in bytes of the largest record that is sent.
	BufferSize int64
	// EarlyData accepts requests in the first message of TLS 1.3.
	EarlyData bool
	// RejectUnknown rejects handshakes for names that lead to DefaultHost.
	RejectUnknown bool
}

// Ciphers is a list as OpenSSL reads it, of characters that are safe in nginx.conf.
type Ciphers struct{ text string }

// maxCiphers bounds a list in bytes. The longest that OpenSSL prints, of all
// ciphers that it has, is shorter.
const maxCiphers = 4096

var cipherCharacters = regexp.MustCompile(`^[A-Za-z0-9!:+_@=.-]*$`)

// NewCiphers reads a list, separated by colons or spaces. It may be empty.
func NewCiphers(text string) (Ciphers, error) {
	text = strings.Join(strings.Fields(text), ":")
	if len(text) > maxCiphers {
		return Ciphers{}, fmt.Errorf("must have at most %d bytes", maxCiphers)
	}
	if !cipherCharacters.MatchString(text) {
		return Ciphers{}, errors.New("must be names of ciphers, separated by colons, of letters, digits and !+_@=.-")
	}
	adds := func(word string) bool { return word != "" && !strings.ContainsAny(word[:1], "!+-@=") }
	if text != "" && !slices.ContainsFunc(strings.Split(text, ":"), adds) {
		return Ciphers{}, errors.New("must have at least one name without the prefix !, + or -")
	}
	return Ciphers{text}, nil
}

// IntermediateCiphers are those of Mozilla's intermediate profile.
func IntermediateCiphers() Ciphers {
	return Ciphers{"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" +
		"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" +
		"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:" +
		"DHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES128-GCM-SHA256"}
}

func (c Ciphers) String() string { return c.text }

// TLSVersions is a set of versions of TLS.
type TLSVersions int

// The versions, as members of the set.
const (
	TLS10 TLSVersions = 1 << iota
	TLS11
	TLS12
	TLS13
)

// tlsVersions are the names, in the order of the constants.
var tlsVersions = [...]string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

// NewTLSVersions reads one or more names, separated by spaces.
func NewTLSVersions(text string) (TLSVersions, error) {
	var set TLSVersions
	for _, name := range strings.Fields(text) {
		i := slices.Index(tlsVersions[:], name)
		if i < 0 {
			set = 0
			break
		}
		set |= 1 << i
	}
	if set == 0 {
		return 0, fmt.Errorf("must be one or more of %s, separated by spaces", strings.Join(tlsVersions[:], ", "))
	}
	return set, nil
}

// String is the names in order.
func (v TLSVersions) String() string { return Members(v, tlsVersions[:]) }

// Curves are the groups for key exchange. The zero value leaves the choice to
// NGINX.
type Curves struct{ text string }

// curves are what every OpenSSL 3 knows, hybridGroups what only OpenSSL 3.5 and
// later do.
var (
	curves = []string{
		"X25519", "X448", "prime256v1", "secp384r1", "secp521r1", "P-256", "P-384", "P-521",
		"ffdhe2048", "ffdhe3072", "ffdhe4096", "ffdhe6144", "ffdhe8192",
	}
	hybridGroups = []string{"X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024"}
)

// NewCurves reads "auto" or names between colons.
func NewCurves(text string) (Curves, error) {
	if text == "auto" {
		return Curves{}, nil
	}
	all := slices.Concat(curves, hybridGroups)
	for name := range strings.SplitSeq(text, ":") {
		if !slices.Contains(all, name) {
			return Curves{}, fmt.Errorf("must be auto, or names of %s, separated by colons", strings.Join(all, ", "))
		}
	}
	return Curves{text}, nil
}

// Hybrid is the first of the groups that combines a curve with ML-KEM, empty if
// none does.
func (c Curves) Hybrid() string {
	for name := range strings.SplitSeq(c.text, ":") {
		if slices.Contains(hybridGroups, name) {
			return name
		}
	}
	return ""
}

func (c Curves) String() string {
	if c.text == "" {
		return "auto"
	}
	return c.text
}
