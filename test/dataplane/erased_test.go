package dataplane_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// sharedHolds reports whether the memory that NGINX's processes share has a text.
func sharedHolds(t *testing.T, pid int, texts ...[]byte) bool {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Skipf("the memory can't be read: %v", err)
	}
	defer memory.Close()
	read := 0
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, " rw-s ") || !strings.Contains(line, "/dev/zero") {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(io.NewSectionReader(memory, from, to-from))
		if err != nil {
			t.Fatal(err)
		}
		read += len(content)
		for _, text := range texts {
			if bytes.Contains(content, text) {
				return true
			}
		}
	}
	if read == 0 {
		t.Fatal("no shared memory was read")
	}
	return false
}

// secretOf are the bytes of a private key, as a number and in the lines of its PEM.
func secretOf(t *testing.T, pair headgatetest.KeyPair) [][]byte {
	t.Helper()
	block, _ := pem.Decode([]byte(pair.Key))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	number, err := parsed.(*ecdsa.PrivateKey).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(pair.Key, "\n")
	return [][]byte{number, []byte(lines[1][16:56]), []byte(base64.StdEncoding.EncodeToString(block.Bytes)[16:56])}
}

// D1: what was in the shared memory is overwritten when it is replaced or deleted.
func TestSecretsAreErased(t *testing.T) {
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1})
	ingress := headgatetest.WithTLS(headgatetest.Ingress("web", "a.test", "/", "one"), "tls a.test")
	pairs := []headgatetest.KeyPair{headgatetest.NewKeyPair(t, "1", "a.test"), headgatetest.NewKeyPair(t, "longer than the first one", "a.test"),
		headgatetest.NewKeyPair(t, "3", "a.test")}
	for i, pair := range pairs {
		g.Apply(headgatetest.TLSSecret("tls", pair) + ingress)
		g.Do(headgatetest.Request{Scheme: "https", Host: "a.test", Path: "/"})
		if !sharedHolds(t, g.State().PID, secretOf(t, pair)...) {
			t.Fatalf("the key %d is not in the shared memory: the test looks for something else", i)
		}
		if i > 0 && sharedHolds(t, g.State().PID, secretOf(t, pairs[i-1])...) {
			t.Errorf("the key %d is in the shared memory after it was replaced", i-1)
		}
	}
	g.Delete(headgatetest.TLSSecret("tls", pairs[2]) + ingress)
	if sharedHolds(t, g.State().PID, secretOf(t, pairs[2])...) {
		t.Error("the key is in the shared memory after its Secret was deleted")
	}

	const password = "correct-horse-battery"
	secret := "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'a:{PLAIN}" + password + "'}\n"
	guarded := headgatetest.Ingress("guarded", "b.test", "/", "one", "auth-type: basic", "auth-secret: users")
	g.Apply(secret + guarded)
	if !sharedHolds(t, g.State().PID, []byte(password)) {
		t.Fatal("the password is not in the shared memory")
	}
	g.Delete(secret + guarded)
	if sharedHolds(t, g.State().PID, []byte(password)) {
		t.Error("the password is in the shared memory after its Secret was deleted")
	}
}
