// Package basicauth authenticates clients by name and password, with HTTP Basic or
// Digest authentication. A Secret has the users and the hashes of their passwords.
package basicauth

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/model/resource"
)

const name = "basic_auth"

//go:embed *.lua
var lua embed.FS

// The values of auth-type and auth-secret-type, and the key of a Secret that
// is a file.
const (
	basic    = "basic"
	digest   = "digest"
	authFile = "auth-file"
	authMap  = "auth-map"
	fileKey  = "auth"
)

// maxBytes is the size of a Secret's data: the API server takes no larger
// Secrets, but a folder may hold any.
const maxBytes = 1 << 20

var (
	authType = feature.Setting[string]{
		Annotation: "auth-type", Parse: parseType, OnInvalid: feature.Deny, Risk: feature.Low,
		Doc: "Requires a user name and password, by HTTP Basic (basic) or HTTP Digest (digest) authentication.",
	}
	authSecret = feature.Setting[feature.ObjectName]{
		Annotation: "auth-secret", Parse: parseSecret, OnInvalid: feature.Deny, When: asks, Refers: feature.Secret, Risk: feature.Medium,
		Doc: "The Secret with the users and their passwords.",
	}
	authSecretType = feature.Setting[string]{
		Annotation: "auth-secret-type", Needs: feature.Needs(authType, asks), Default: authFile, Parse: feature.Word(authFile, authMap), OnInvalid: feature.Deny, When: asks, Risk: feature.Low,
		Doc: "auth-file: the key auth of the Secret has a line NAME:HASH for each user (with digest, NAME:REALM:HASH). auth-map: each key of the Secret is a user name, and its value is the rest of such a line.",
	}
	authRealm = feature.Setting[string]{
		Annotation: "auth-realm", Needs: feature.Needs(authType, asks), Parse: parseRealm, OnInvalid: feature.Deny, When: asks, Risk: feature.Medium,
		Doc: "The realm that browsers show when they ask for the password. With digest, only lines of an auth-file with this realm are used.",
	}
)

// Feature is Basic and Digest authentication.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Requires a user name and password.",
		Settings: []feature.AnySetting{authType, authSecret, authSecretType, authRealm},
		Route:    route,
		Predict:  prediction.ByPhase{prediction.AuthPhase: predict},
		Lua:      lua,
		Resources: resource.Resources{
			// The counts of nonces that were used; the oldest is dropped first.
			Dictionaries: []resource.Dictionary{{Name: resource.NewName("hg_nonces"), Size: 8 << 20}},
			// The threads that check passwords: 0.7 s each at most, see hash.go. Lua
			// gives a thread one check at a time.
			Threads: []resource.Threads{{Name: resource.NewName("passwords"), Count: 2, Queue: 16}},
		},
	}
}

// policy is what basicauth.lua reads.
type policy struct {
	// Users is the name of the content that has them, see userList.
	Users  string `json:"users"`
	Realm  string `json:"realm"`
	Digest bool   `json:"digest,omitempty"`
}

// asks reports whether the Ingress requires a password. Without auth-type, the
// other settings have no effect, whether their values are valid or not.
func asks(v feature.Values) bool { return authType.Get(v) != "" }

func route(v feature.Values, out *feature.RouteOut) {
	kind := authType.Get(v)
	if kind == "" {
		if authSecret.Get(v).Name != "" {
			out.Ignore(authSecret, finding.InvalidValue, "it has no effect without auth-type", "no password is required")
		}
		return
	}
	form, realm := authSecretType.Get(v), authRealm.Get(v)
	if kind != basic && kind != digest {
		out.Ignore(authType, finding.InvalidValue, fmt.Sprintf("invalid value %q: must be basic or digest", finding.Shorten(kind)), "using digest, as in ingress-nginx: passwords for basic are not taken")
	}
	if authSecret.Get(v).Name == "" {
		out.Reject(authSecret, finding.MissingObject, "auth-type is set, and this annotation is not: it must name a Secret with users")
		return
	}
	list := userList{digest: kind != basic}
	if list.digest {
		list.realm = realm
	}
	key := fmt.Sprintf("%s %v %s %s", name, list.digest, form, list.realm)
	u, ok := feature.FromSecret(v, authSecret, key, func(data map[string][]byte) users { return read(data, form, &list) })
	if !ok {
		return
	}
	if u.rejected != "" {
		out.Reject(authSecret, u.code, u.rejected)
		return
	}
	if u.problems != "" {
		out.Warn(authSecret, finding.InvalidValue, u.problems, "these users cannot sign in")
	}
	if !feature.Exempt(v, out.Route.Written()) {
		feature.Add(out.Route, name, policy{Users: feature.Attach(out.Route, u.content), Realm: realm, Digest: list.digest})
	}
}

// users are the users of a Secret.
type users struct {
	content model.Content
	// problems is what is wrong with some of the users.
	problems string
	// rejected is why the whole Secret is, empty if it is not.
	rejected string
	code     finding.Code
}

// read fills a list with the users of a Secret of the type that form names.
func read(data map[string][]byte, form string, list *userList) users {
	if form == authFile {
		if _, ok := data[fileKey]; !ok {
			return users{code: finding.InvalidValue, rejected: fmt.Sprintf("the Secret has no key %s, which %s needs", fileKey, authFile)}
		}
		data = map[string][]byte{fileKey: data[fileKey]}
	}
	size := 0
	for key, value := range data {
		size += len(key) + len(value)
	}
	if size > maxBytes {
		return users{code: finding.TooMany, rejected: fmt.Sprintf("the Secret has %d bytes: must have at most %d", size, maxBytes)}
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if form == authFile {
			list.add(string(data[key]), "")
		} else {
			list.add(key+":"+string(data[key]), fmt.Sprintf("%.80q", key))
		}
	}
	place := "line"
	if form != authFile {
		place = "the key"
	}
	return users{content: model.NewContent(list.content()), problems: list.problems(place)}
}

// parseType accepts all texts that ingress-nginx accepts.
func parseType(text string) (string, error) {
	if !strings.Contains(text, basic) && !strings.Contains(text, digest) {
		return "", errors.New("must be basic or digest")
	}
	return text, nil
}

func parseSecret(text string) (feature.ObjectName, error) {
	return feature.Object(strings.ReplaceAll(text, " ", ""))
}

var parseRealm = feature.Matching(`^[A-Za-z0-9._~/: -]*$`, 200, "must be at most 200 letters, digits, spaces and :/-._~")
