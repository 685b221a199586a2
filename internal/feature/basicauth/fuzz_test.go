package basicauth

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var contentForm = regexp.MustCompile(`^\n([^\n\r:\x00]+:[^\n\r:\x00]*\n)*$`)

// FuzzUsers reads files of users. For any text in them, the content is a
// line for each of some users, with what NGINX would have taken for the name's
// hash, and each line that is not used is reported or a comment.
func FuzzUsers(f *testing.F) {
	real, err := os.ReadFile("testdata/htpasswd")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		string(real), "", "\n", "a", "a:", ":a", "#a:{PLAIN}b", "a:{PLAIN}b:c\r\na:{PLAIN}d", "a:{PLAIN}\x00", "a\nb:{PLAIN}c", "a\rb:{PLAIN}c",
		"a:here:0123456789abcdef0123456789abcdef", "a:there:0123456789abcdef0123456789abcdef", "a:$2y$99$" + strings.Repeat("a", 53),
		"\xff:{PLAIN}\xfe", "a:{SHA}=", "a:$6$rounds=999999999999$x$" + strings.Repeat("a", 86),
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, digest bool) {
		list := userList{realm: "here", digest: digest}
		list.add(text, "")
		content := list.content()
		if !contentForm.Match(content) {
			t.Fatalf("%q became %q", text, content)
		}
		users := map[string]bool{}
		for line := range strings.Lines(string(content[1:])) {
			name, hash, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			if users[name] {
				t.Errorf("%q stands twice in %q", name, content)
			}
			users[name] = true
			if strings.HasPrefix(name, "#") {
				t.Errorf("a comment became a user: %q", content)
			}
			if !digest && !strings.Contains(text, name+":"+hash) {
				t.Errorf("%q is not in %q", line, text)
			}
			if digest && (len(hash) != 32 || !of(hash, hexDigits)) || !digest && checkHash(hash) != nil {
				t.Errorf("%q has a hash that nothing can check", line)
			}
		}
		if len(list.problems("line")) > 1000 {
			t.Errorf("a finding of %d bytes", len(list.problems("line")))
		}
		again := userList{realm: "here", digest: digest}
		again.add(text, "")
		if !bytes.Equal(content, again.content()) {
			t.Error("the same file gave two contents")
		}
	})
}

// BenchmarkUsers reads a file of 10,000 users.
func BenchmarkUsers(b *testing.B) {
	var file strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&file, "user%d:$2y$10$%s\n", i, strings.Repeat("a", 53))
	}
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		list := userList{}
		list.add(file.String(), "")
		if len(list.content()) != file.Len()+1 {
			b.Fatal(list.problems("line"))
		}
	}
}
