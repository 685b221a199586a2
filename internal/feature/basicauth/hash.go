package basicauth

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of what a check of a password costs. All checks share a few threads: those
// of one tenant must not take seconds.
const (
	// maxBcrypt is a cost of bcrypt: 12 takes 0.2 s. (A13)
	maxBcrypt = 12
	// maxRounds is a number of rounds of SHA-256 and SHA-512: this many take 0.2 s. (A13)
	maxRounds = 400_000
)

// Alphabets of hashes. Files have thousands of lines, and are read for each
// host: regular expressions would take ten times as long.
const (
	hexDigits    = "0123456789abcdef"
	decimals     = "0123456789"
	cryptDigits  = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base64Digits = "+/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz="
)

// of reports whether a text is made of the bytes of an alphabet.
func of(text, alphabet string) bool {
	return strings.Trim(text, alphabet) == ""
}

// checkHash reports whether password.lua can check a hash in bounded
// time.
func checkHash(hash string) error {
	kind, rest := kindOf(hash)
	good := false
	switch kind {
	case "{PLAIN}":
		good = true
	case "{SHA}", "{SSHA}":
		good = rest != "" && of(rest, base64Digits)
	case "$2a$", "$2b$", "$2y$":
		cost, sum, _ := strings.Cut(rest, "$")
		if len(cost) == 2 && of(cost, decimals) && len(sum) == 53 && of(sum, cryptDigits) {
			return atMost(cost, maxBcrypt, "the cost")
		}
	case "$apr1$", "$1$":
		salt, sum, _ := strings.Cut(rest, "$")
		good = len(salt) <= 8 && len(sum) == 22 && of(sum, cryptDigits)
	case "$5$", "$6$":
		return checkSHA(rest, map[string]int{"$5$": 43, "$6$": 86}[kind])
	case "":
		good = len(hash) == 13 && of(hash, cryptDigits)
	}
	if !good {
		return errUnknown
	}
	return nil
}

var errUnknown = errors.New("the hash must be one of bcrypt, $apr1$, $1$, $5$, $6$, {SHA}, {SSHA}, {PLAIN} and DES (crypt)")

// kindOf parts a hash behind what it begins with in dollars or braces, if it
// does.
func kindOf(hash string) (kind, rest string) {
	if hash == "" {
		return "", ""
	}
	end := -1
	switch hash[0] {
	case '$':
		end = strings.IndexByte(hash[1:], '$') + 1
	case '{':
		end = strings.IndexByte(hash, '}')
	}
	return hash[:end+1], hash[end+1:]
}

// checkSHA takes what is behind $5$ and $6$: rounds, if they are written, salt
// and sum, of so many digits.
func checkSHA(rest string, digits int) error {
	rounds := ""
	if behind, ok := strings.CutPrefix(rest, "rounds="); ok {
		if rounds, rest, ok = strings.Cut(behind, "$"); !ok || rounds == "" || len(rounds) > 9 || !of(rounds, decimals) {
			return errUnknown
		}
	}
	salt, sum, _ := strings.Cut(rest, "$")
	if len(salt) > 16 || len(sum) != digits || !of(sum, cryptDigits) {
		return errUnknown
	}
	return atMost(rounds, maxRounds, "the number of rounds")
}

func atMost(digits string, most int, what string) error {
	if digits == "" {
		return nil
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > most {
		return fmt.Errorf("%s is %s: must be at most %d", what, digits, most)
	}
	return nil
}
