package basicauth

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxReported is how many lines a finding names.
const maxReported = 5

// A userList reads users as NGINX does: the first line of a name counts, what
// comes after a further colon is a comment, and lines that begin with # are too.
type userList struct {
	// realm is the one that lines are for, with digest.
	realm  string
	digest bool

	lines   bytes.Buffer
	seen    map[string]bool
	wrong   []string
	further int
}

// add reads the lines of a text. Where says what a line is called.
func (u *userList) add(text string, where func(line int) string) {
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
		if err != nil {
			u.report(where(number) + ": " + err.Error())
			continue
		}
		if u.seen == nil {
			u.seen = map[string]bool{}
		}
		if !u.seen[user] {
			u.seen[user] = true
			u.lines.WriteString(user)
			u.lines.WriteByte(':')
			u.lines.WriteString(hash)
			u.lines.WriteByte('\n')
		}
	}
}

func (u *userList) report(problem string) {
	if len(u.wrong) == maxReported {
		u.further++
		return
	}
	u.wrong = append(u.wrong, problem)
}

// problems are the problems of the lines, empty if there are none.
func (u *userList) problems() string {
	if u.wrong == nil {
		return ""
	}
	text := strings.Join(u.wrong, "; ")
	if u.further > 0 {
		text += fmt.Sprintf("; and %d more", u.further)
	}
	return text
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
