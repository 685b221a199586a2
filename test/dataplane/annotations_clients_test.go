package dataplane_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// member is in all files with passwords, and stranger in none.
const member, memberHash, stranger = "member:known", "{PLAIN}known", "stranger:known"

// authService lets all clients in but the stranger.
func authService(w http.ResponseWriter, r *http.Request) {
	if name, _, _ := r.BasicAuth(); strings.HasPrefix(stranger, name+":") {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// withMember is a Secret with passwords to which that of member is added.
func withMember(secret *corev1.Secret) *corev1.Secret {
	secret = secret.DeepCopy()
	name, _, _ := strings.Cut(member, ":")
	if file, ok := secret.Data["auth"]; ok {
		secret.Data["auth"] = append(file, "\n"+name+":"+memberHash...)
	} else {
		secret.Data[name] = []byte(memberHash)
	}
	return secret
}

// clients ask the route by http, but for https, https+, which keeps its connection,
// and the neighbour's.
var clients = []string{"http", "https", "https+", "member", "stranger", "neighbour"}

func (b *loadFixture) request(client string) headgatetest.Request {
	r := headgatetest.Request{Host: routeHost, Path: "/mine/x"}
	switch client {
	case "https", "https+":
		r.Scheme, r.HTTP2 = "https", client == "https+"
	case "member":
		r.Header = authorization(member)
	case "stranger":
		r.Header = authorization(stranger)
	case "neighbour":
		r.Host = neighbourHost
	}
	return r
}

func authorization(password string) http.Header {
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(password))}}
}

// client asks as one of clients.
func (b *loadFixture) client(number int) func() error {
	name := clients[number]
	client := b.g.NewClient(b.request(name).HTTP2)
	return func() error {
		b.mu.Lock()
		from := len(b.steps) - 1
		b.mu.Unlock()
		r, err := b.g.Try(client, b.request(name))
		if name == "https" {
			client.CloseIdleConnections()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.count[name]++
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.asked = append(b.asked, answered{name, r.Status, from, len(b.steps) - 1})
		if name == "neighbour" && r.Status != http.StatusOK {
			return fmt.Errorf("the neighbour answers %d", r.Status)
		}
		return nil
	}
}

// now are the statuses that are right at this moment.
func (b *loadFixture) now() map[string][]int {
	statuses := map[string][]int{}
	for _, client := range clients {
		statuses[client] = []int{b.g.Do(b.request(client)).Status}
	}
	return statuses
}

// guarded wants those let in and those refused whom a case's guards let in and
// refuse.
func (b *loadFixture) guarded(t *testing.T, c featuretest.Case, answers map[string][]int) {
	t.Helper()
	locked := c.Annotations["auth-type"] == "basic"
	global := c.Keys["global-auth-url"] != "" && c.Annotations["enable-global-auth"] != "false"
	checked := c.Annotations["auth-url"] != "" || global
	if c.Keys["no-auth-locations"] != "" || !locked && !checked {
		return
	}
	if locked {
		b.locked++
	}
	if checked {
		b.checked++
	}
	for client, open := range map[string]bool{"http": !locked, "https": !locked, "member": true, "stranger": false} {
		status := answers[client][0]
		refused := status == http.StatusUnauthorized || status == http.StatusFound && c.Annotations["auth-signin"] != ""
		if open && status != http.StatusOK || !open && !refused {
			t.Errorf("%q with the keys %q: %s is answered %d", c.Annotations, c.Keys, client, status)
		}
	}
}
