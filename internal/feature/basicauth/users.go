package basicauth

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

// maxReported is how many different problems a finding names.
const maxReported = 5

// A userList reads users as NGINX does: the first line of a name counts, what
// comes after a further colon is a comment, and lines that begin with # are too.
type userList struct {
	// realm is the one that lines are for, with digest.
	realm  string
	digest bool

	lines bytes.Buffer
	seen  map[string]bool
	// wrong are the places of each problem; messages has the problems in their order.
	wrong    map[string][]string
	messages []string
}

// add reads the lines of a text. Key is that of the Secret where it stands for all lines
// of the text in findings, else empty.
func (u *userList) add(text, key string) {
	if u.seen == nil {
		u.seen, u.wrong = map[string]bool{}, map[string][]string{}
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if end := strings.IndexAny(line, "\r\n"); end >= 0 {
			line = line[:end]
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		user, hash, err := u.split(line)
		switch {
		case err != nil:
			u.report(err.Error(), cmp.Or(key, strconv.Itoa(number)))
		case !u.seen[user]:
			u.seen[user] = true
			u.lines.WriteString(user + ":" + hash + "\n")
		}
	}
}

func (u *userList) report(message, place string) {
	places := u.wrong[message]
	if places == nil {
		u.messages = append(u.messages, message)
	}
	if places == nil || places[len(places)-1] != place {
		u.wrong[message] = append(places, place)
	}
}

// problems are the problems of the lines, each with its places: "lines 1, 2 and 7 more".
// It is empty if there are none.
func (u *userList) problems(place string) string {
	var list []string
	for _, message := range u.messages[:min(len(u.messages), maxReported)] {
		word := place
		if len(u.wrong[message]) > 1 {
			word += "s"
		}
		list = append(list, fmt.Sprintf("%s %s: %s", word, finding.ShortenList(u.wrong[message]), message))
	}
	if further := len(u.messages) - maxReported; further > 0 {
		list = append(list, fmt.Sprintf("and %d more", further))
	}
	return strings.Join(list, "; ")
}

// content is a line "NAME:HASH" for each user, with a line end before the
// first, so that a name is found between a line end and a colon.
func (u *userList) content() []byte { return append([]byte("\n"), u.lines.Bytes()...) }

// split parts a line without its end.
func (u *userList) split(line string) (user, hash string, err error) {
	if strings.Contains(line, "\x00") {
		return "", "", errors.New("must not contain a NUL byte")
	}
	user, rest, ok := strings.Cut(line, ":")
	if !ok || user == "" {
		return "", "", errors.New("must be NAME:HASH")
	}
	if u.digest {
		hash, err = u.digestOf(rest)
		return user, hash, err
	}
	hash, _, _ = strings.Cut(rest, ":")
	return user, hash, checkHash(hash)
}

func (u *userList) digestOf(rest string) (string, error) {
	realm, hash, ok := strings.Cut(rest, ":")
	if !ok {
		return "", errors.New("must be NAME:REALM:HASH")
	}
	if realm != u.realm {
		return "", errors.New("the realm must be that of auth-realm")
	}
	hash, _, _ = strings.Cut(hash, ":")
	hash = strings.ToLower(hash)
	if len(hash) != 32 || !of(hash, hexDigits) {
		return "", errors.New("the hash must be 32 hexadecimal digits (MD5)")
	}
	return hash, nil
}
