// Package backendview shows backends in the JSON form of ingress-nginx's dbg, from the
// units that the data plane has.
//
// It knows the form and the units' payloads. It does not know how they are read.
package backendview

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Backend is one element of the list. Names of fields are those of ingress-nginx.
type Backend struct {
	Name                 string          `json:"name"`
	Service              Service         `json:"service"`
	Port                 any             `json:"port"`
	SSLPassthrough       bool            `json:"sslPassthrough"`
	Endpoints            []Endpoint      `json:"endpoints,omitempty"`
	SessionAffinity      SessionAffinity `json:"sessionAffinityConfig"`
	UpstreamHashBy       UpstreamHashBy  `json:"upstreamHashByConfig"`
	LoadBalance          string          `json:"load-balance"`
	NoServer             bool            `json:"noServer"`
	TrafficShapingPolicy TrafficShaping  `json:"trafficShapingPolicy"`
	AlternativeBackends  []string        `json:"alternativeBackends,omitempty"`
	Headgate             OfHeadgate      `json:"headgate"`
}

// OfHeadgate is what Headgate has in addition: the unit as it is.
type OfHeadgate struct {
	Key     string          `json:"key"`
	Version string          `json:"version"`
	Unit    json.RawMessage `json:"unit"`
}

// A Service is the name of a Service, in the form of an object.
type Service struct {
	Metadata struct {
		Name      string `json:"name,omitempty"`
		Namespace string `json:"namespace,omitempty"`
	} `json:"metadata"`
}

// An Endpoint is an address, without brackets, and a port.
type Endpoint struct {
	Address string `json:"address"`
	Port    string `json:"port"`
}

// SessionAffinity is how sessions are kept.
type SessionAffinity struct {
	Name   string        `json:"name"`
	Mode   string        `json:"mode"`
	Cookie SessionCookie `json:"cookieSessionAffinity"`
}

// A SessionCookie is the cookie of sessions.
type SessionCookie struct {
	Name            string `json:"name"`
	ChangeOnFailure bool   `json:"change_on_failure,omitempty"`
}

// UpstreamHashBy is the text that chooses the endpoint.
type UpstreamHashBy struct {
	By         string `json:"upstream-hash-by,omitempty"`
	Subset     bool   `json:"upstream-hash-by-subset,omitempty"`
	SubsetSize int    `json:"upstream-hash-by-subset-size,omitempty"`
}

// TrafficShaping says which requests a canary gets.
type TrafficShaping struct {
	Weight        int    `json:"weight"`
	WeightTotal   int    `json:"weightTotal"`
	Header        string `json:"header"`
	HeaderValue   string `json:"headerValue"`
	HeaderPattern string `json:"headerPattern"`
	Cookie        string `json:"cookie"`
}

// Name is the name that ingress-nginx has for a backend: its namespace, Service and port.
func Name(key string) string {
	return strings.Trim(strings.ReplaceAll(key, "/", "-"), "-")
}

// payload is a backend as it is packed, with the settings of the pickers of features.
type payload struct {
	Endpoints []string          `json:"endpoints"`
	Picker    []json.RawMessage `json:"picker"`
}

type picker struct {
	// Of affinity.
	Cookie     string `json:"cookie"`
	Persistent bool   `json:"persistent"`
	Moves      bool   `json:"moves"`
	// Of balancing.
	Algorithm string `json:"algorithm"`
	Key       string `json:"key"`
	Subset    int    `json:"subset"`
}

// From makes a Backend of a unit. roles are those of all backends; nil leaves out what
// they say.
func From(key, version string, unit json.RawMessage, roles Roles) (Backend, error) {
	b := Backend{Name: Name(key), LoadBalance: "round_robin", Headgate: OfHeadgate{key, version, unit}}
	var p payload
	if err := json.Unmarshal(unit, &p); err != nil {
		return Backend{}, fmt.Errorf("decode backend %s: %w", key, err)
	}
	b.Service.Metadata.Namespace, b.Service.Metadata.Name, b.Port = parts(key)
	for _, text := range p.Endpoints {
		address, err := netip.ParseAddrPort(text)
		if err != nil {
			return Backend{}, fmt.Errorf("decode backend %s: %w", key, err)
		}
		b.Endpoints = append(b.Endpoints, Endpoint{address.Addr().String(), strconv.Itoa(int(address.Port()))})
	}
	if len(p.Picker) > 1 {
		var settings picker
		if err := json.Unmarshal(p.Picker[1], &settings); err != nil {
			return Backend{}, fmt.Errorf("decode the picker of backend %s: %w", key, err)
		}
		if err := b.pick(settings); err != nil {
			return Backend{}, fmt.Errorf("decode the picker of backend %s: %w", key, err)
		}
	}
	roles.describe(key, &b)
	return b, nil
}

// parts are the namespace, Service and port of a key. The port is a number where it is
// written as one, 0 for the Service's first one.
func parts(key string) (namespace, service string, port any) {
	namespace, rest, _ := strings.Cut(key, "/")
	service, text, _ := strings.Cut(rest, "/")
	if number, err := strconv.ParseUint(text, 10, 16); err == nil {
		return namespace, service, number
	}
	if text == "" {
		return namespace, service, 0
	}
	return namespace, service, text
}

// pick shows the settings of the feature that chooses the endpoints.
func (b *Backend) pick(p picker) (err error) {
	if p.Cookie != "" {
		b.SessionAffinity = SessionAffinity{"cookie", "balanced", SessionCookie{p.Cookie, p.Moves}}
		if p.Persistent {
			b.SessionAffinity.Mode = "persistent"
		}
	}
	switch {
	case p.Key != "":
		b.UpstreamHashBy = UpstreamHashBy{Subset: p.Subset > 0, SubsetSize: p.Subset}
		b.UpstreamHashBy.By, err = text(p.Key)
	case p.Algorithm != "":
		b.LoadBalance = p.Algorithm
	}
	return err
}

// text writes a template as an annotation has it.
func text(template string) (string, error) {
	var pieces []any
	if err := json.Unmarshal([]byte(template), &pieces); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, piece := range pieces {
		switch piece := piece.(type) {
		case string:
			b.WriteString(piece)
		case []any:
			words := make([]string, len(piece))
			for i, word := range piece {
				words[i] = strings.TrimPrefix(fmt.Sprint(word), "group")
			}
			b.WriteString("${" + strings.TrimPrefix(strings.Join(words, "_"), "_") + "}")
		}
	}
	return b.String(), nil
}
