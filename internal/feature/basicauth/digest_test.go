package basicauth_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// alice is a line as htdigest writes it, for the password "secret" and the
// realm "here": md5sum of "alice:here:secret".
const alice = "alice:here:7fbf91f2f384b9e4b6fbd49059104234"

func md5Hex(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// An answer is what a client says to a challenge, with fields that a test may
// have wrong.
type answer struct {
	user, realm, password, nonce, uri, method, nc, cnonce, qop, algorithm string
}

func (a answer) header() string {
	response := md5Hex(md5Hex(a.user+":"+a.realm+":"+a.password) + ":" + a.nonce + ":" + a.nc + ":" + a.cnonce + ":" + a.qop +
		":" + md5Hex(a.method+":"+a.uri))
	return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", algorithm=%s, response="%s", qop=%s, nc=%s, cnonce="%s"`,
		a.user, a.realm, a.nonce, a.uri, a.algorithm, response, a.qop, a.nc, a.cnonce)
}

func right(nonce string, count int) answer {
	return answer{"alice", "here", "secret", nonce, "/a?b=c", "GET", fmt.Sprintf("%08x", count), "0a4f113b", "auth", "MD5"}
}

var challengeForm = regexp.MustCompile(`^Digest realm="here", qop="auth", algorithm=MD5, nonce="([0-9a-f]{56})"(, stale=true)?$`)

// challenge is the nonce of a refusal.
func challenge(t *testing.T, r headgatetest.Response) (nonce string, stale bool) {
	t.Helper()
	r.WantStatus(t, 401)
	found := challengeForm.FindStringSubmatch(r.Header.Get("WWW-Authenticate"))
	if found == nil {
		t.Fatalf("WWW-Authenticate: %q", r.Header.Get("WWW-Authenticate"))
	}
	return found[1], found[2] != ""
}

func ask(g *headgatetest.Instance, host, authorization string) headgatetest.Response {
	return g.Do(headgatetest.Request{Host: host, Path: "/a?b=c", Header: http.Header{"Authorization": {authorization}}})
}

func startDigest(t *testing.T) *headgatetest.Instance {
	t.Helper()
	digested := func(name, host, secret string) string {
		return headgatetest.Ingress(name, host, "/", "one", "auth-type: digest", "auth-secret: "+secret, "auth-realm: here")
	}
	return headgatetest.Start(t, headgatetest.Options{Manifests: one(t) +
		secret("users", alice, `q"u\o:here:`+md5Hex(`q"u\o:here:secret`), "bob:there:"+md5Hex("bob:here:secret")) +
		secret("others", alice, "eve:here:"+md5Hex("eve:here:secret")) +
		digested("web", "web.test", "users") + digested("other", "other.test", "others")})
}

func TestDigest(t *testing.T) {
	t.Parallel()
	g := startDigest(t)
	nonce, stale := challenge(t, g.Get("web.test", "/a?b=c"))
	if stale {
		t.Error("the first challenge says that a nonce is old")
	}
	r := ask(g, "web.test", right(nonce, 1).header()).WantStatus(t, 200)
	if got := r.Echo.Header.Get("Authorization"); got != "" {
		t.Errorf("the backend got %q", got)
	}
	// Requests side by side may come in another order.
	for _, count := range []int{7, 3, 2} {
		ask(g, "web.test", right(nonce, count).header()).WantStatus(t, 200)
	}
	for _, count := range []int{1, 3} {
		if _, stale := challenge(t, ask(g, "web.test", right(nonce, count).header())); !stale {
			t.Errorf("count %d was used, and the answer does not say that the nonce is", count)
		}
	}

	escaped := right(nonce, 20)
	escaped.user = `q"u\o`
	header := strings.Replace(escaped.header(), `username="q"u\o"`, `username="q\"u\\o"`, 1)
	ask(g, "web.test", header).WantStatus(t, 200)

	over2 := headgatetest.Request{Scheme: "https", HTTP2: true, Host: "web.test", Path: "/a?b=c"}
	login, _ := challenge(t, g.Do(over2))
	over2.Header = http.Header{"Authorization": {right(login, 1).header()}}
	if r := g.Do(over2).WantStatus(t, 200); r.Proto != "HTTP/2.0" || r.Echo.Header.Get("Authorization") != "" {
		t.Errorf("over %s the backend got %q", r.Proto, r.Echo.Header.Get("Authorization"))
	}
	challenge(t, g.Do(over2)) // the same again

	for what, change := range map[string]func(*answer){
		"another password":    func(a *answer) { a.password = "Secret" },
		"another user":        func(a *answer) { a.user = "eve" },
		"another realm":       func(a *answer) { a.user, a.realm = "bob", "there" },
		"a user of a realm":   func(a *answer) { a.user = "bob" },
		"no user":             func(a *answer) { a.user = "" },
		"another method":      func(a *answer) { a.method = "POST" },
		"another URI":         func(a *answer) { a.uri = "/a" },
		"no count":            func(a *answer) { a.nc = "1" },
		"auth-int":            func(a *answer) { a.qop = "auth-int" },
		"SHA-256":             func(a *answer) { a.algorithm = "SHA-256" },
		"a session algorithm": func(a *answer) { a.algorithm = "MD5-sess" },
	} {
		a := right(nonce, 100)
		change(&a)
		if _, stale := challenge(t, ask(g, "web.test", a.header())); stale {
			t.Errorf("%s: the answer says that only the nonce is old", what)
		}
	}
}

func TestNonces(t *testing.T) {
	t.Parallel()
	g := startDigest(t)
	nonce, _ := challenge(t, g.Get("web.test", "/a?b=c"))
	foreign, _ := challenge(t, g.Get("other.test", "/a?b=c"))
	otherDigit := "0"
	if nonce[20:21] == otherDigit {
		otherDigit = "1"
	}
	for what, wrong := range map[string]string{
		"of other users": foreign,
		"empty":          "",
		"longer":         nonce + "0",
		"shorter":        nonce[:55],
		"older":          "00000001" + nonce[8:],
		"of the future":  "ffffffff" + nonce[8:],
		"made up":        strings.Repeat("0", 56),
		"changed":        nonce[:20] + otherDigit + nonce[21:],
		"no hexadecimal": strings.Repeat("z", 56),
	} {
		fresh, stale := challenge(t, ask(g, "web.test", right(wrong, 1).header()))
		if !stale {
			t.Errorf("a nonce that is %s: the password is right, and the answer does not say that only the nonce is wrong", what)
		}
		if fresh == nonce {
			t.Errorf("the same nonce was given out again")
		}
	}
	// Still good: none of these was a use of it.
	ask(g, "web.test", right(nonce, 1).header()).WantStatus(t, 200)
}

func TestDigestHeaders(t *testing.T) {
	t.Parallel()
	g := startDigest(t)
	nonce, _ := challenge(t, g.Get("web.test", "/a?b=c"))
	count := 0
	whole := func() string { count++; return right(nonce, count).header() }
	for what, c := range map[string]struct {
		header string
		want   int
	}{
		"as it is":              {whole(), 200},
		"without an algorithm":  {strings.Replace(whole(), "algorithm=MD5, ", "", 1), 200},
		"small letters":         {strings.Replace(whole(), "Digest ", "digest  ", 1), 200},
		"spaces":                {strings.ReplaceAll(whole(), ", ", " ,\t"), 200},
		"no spaces":             {strings.ReplaceAll(whole(), ", ", ","), 200},
		"quotes everywhere":     {strings.Replace(whole(), "qop=auth", `qop="auth"`, 1), 200},
		"more":                  {whole() + `, opaque="", userhash=false`, 200},
		"a field twice":         {whole() + `, username="alice"`, 401},
		"a field twice, late":   {whole() + `, Realm="here"`, 401},
		"a comma at the end":    {whole() + ",", 401},
		"an open quote":         {whole() + `, opaque="`, 401},
		"an escape at the end":  {whole() + `, opaque="\`, 401},
		"no comma":              {strings.Replace(whole(), ", qop", " qop", 1), 401},
		"no value":              {whole() + ", opaque=", 401},
		"no equals sign":        {whole() + ", opaque", 401},
		"no response":           {strings.Replace(whole(), "response=", "answer=", 1), 401},
		"no cnonce":             {strings.Replace(whole(), "cnonce=", "onnce=", 1), 401},
		"no qop":                {strings.Replace(whole(), "qop=auth, ", "", 1), 401},
		"a short response":      {strings.Replace(whole(), `response="`, `response="", x="`, 1), 401},
		"only the scheme":       {"Digest ", 401},
		"another scheme":        {"Basic YWxpY2U6c2VjcmV0", 401},
		"a name with no scheme": {"Digestive " + whole(), 401},
		"many fields":           {"Digest " + strings.Repeat("a=b, ", 1000), 401},
		"many backslashes":      {`Digest a="` + strings.Repeat(`\\`, 2000), 401},
	} {
		if r := ask(g, "web.test", c.header); r.Status != c.want {
			t.Errorf("%s: status %d, want %d", what, r.Status, c.want)
		}
	}
}
