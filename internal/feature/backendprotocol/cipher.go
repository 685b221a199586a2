package backendprotocol

import (
	"fmt"
	"slices"
	"strings"
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
	words := cipherWords()
	var list []int
	for i, word := range strings.Split(text, ":") {
		index := slices.Index(words, word)
		if index < 0 || word == cipherDefault && i > 0 || i == 0 && slices.Contains(cipherExclusions, word) || i >= maxCiphers {
			return nil, fmt.Errorf("must be at most %d words, separated by colons, of %s (at the start alone), %s; and not at the start %s",
				maxCiphers, cipherDefault, strings.Join(cipherNames, ", "), strings.Join(cipherExclusions, ", "))
		}
		list = append(list, index)
	}
	return list, nil
}
