package backendprotocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

// NGINX rejects its whole configuration if a list leaves no cipher. So each word that adds
// some is one that all versions of OpenSSL 3 know, and no word that removes some can remove
// these.
var (
	// cipherDefault counts at the start alone.
	cipherDefault = "DEFAULT"
	cipherNames   = []string{
		"HIGH", "ALL",
		"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES256-GCM-SHA384",
		"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", "DHE-RSA-CHACHA20-POLY1305",
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256",
		"ECDHE-ECDSA-AES256-SHA384", "ECDHE-RSA-AES256-SHA384", "DHE-RSA-AES256-SHA256",
		"ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256", "DHE-RSA-AES128-SHA256",
		"ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", "DHE-RSA-AES256-SHA",
		"ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "DHE-RSA-AES128-SHA",
		"AES256-GCM-SHA384", "AES128-GCM-SHA256", "AES256-SHA256", "AES128-SHA256", "AES256-SHA", "AES128-SHA",
	}
	cipherExclusions = []string{
		"!aNULL", "!eNULL", "!NULL", "!ADH", "!AECDH", "!EXP", "!EXPORT", "!LOW", "!MEDIUM", "!DES", "!3DES", "!RC2", "!RC4", "!IDEA", "!SEED",
		"!MD5", "!PSK", "!SRP", "!DSS", "!aDSS", "!CAMELLIA", "!ARIA", "!KRB5",
	}
)

// maxCiphers bounds a list.
const maxCiphers = 64

func cipherWords() []string {
	return slices.Concat([]string{cipherDefault}, cipherNames, cipherExclusions)
}

// parseCiphers returns indexes of cipherWords; none stand for the default.
func parseCiphers(text string) ([]int, error) {
	if text == "" || text == cipherDefault {
		return nil, nil
	}
	words, entries := cipherWords(), strings.Split(text, ":")
	if len(entries) > maxCiphers {
		return nil, fmt.Errorf("must have at most %d entries", maxCiphers)
	}
	list := make([]int, len(entries))
	for i, word := range entries {
		list[i] = slices.Index(words, word)
		switch {
		case list[i] < 0:
			return nil, fmt.Errorf("entry %q is not known: must be %s, HIGH, ALL, a cipher of TLS 1.2 such as %s, or an exclusion such as %s",
				finding.Shorten(word), cipherDefault, cipherNames[len(cipherNames)-1], cipherExclusions[0])
		case word == cipherDefault && i > 0:
			return nil, fmt.Errorf("%s must be the first entry", word)
		case slices.Contains(cipherExclusions, word) && i == 0:
			return nil, fmt.Errorf("%s must be behind an entry that adds ciphers, such as %s", word, cipherDefault)
		}
	}
	return list, nil
}
