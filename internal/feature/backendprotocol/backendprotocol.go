// Package backendprotocol has the protocol of requests to backends, the parameters of FastCGI,
// and TLS to backends: the verification of their certificates, and Headgate's own certificate.
package backendprotocol

import (
	"embed"
	"errors"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/resource"
)

const name = "backend_protocol"

//go:embed *.lua
var lua embed.FS

// A protocol is a value of backend-protocol.
type protocol string

// The protocols. Without the annotation it is unset.
const (
	unset    protocol = ""
	http     protocol = "HTTP"
	https    protocol = "HTTPS"
	autoHTTP protocol = "AUTO_HTTP"
	grpc     protocol = "GRPC"
	grpcs    protocol = "GRPCS"
	fcgi     protocol = "FCGI"
)

// HTTP is the zero value: a route without the annotation is as it was.
var protocols = map[protocol]model.Profile{
	http:     {},
	https:    {TLS: true},
	autoHTTP: {TLS: true, AsClient: true},
	grpc:     {Protocol: model.GRPC},
	grpcs:    {Protocol: model.GRPC, TLS: true},
	fcgi:     {Protocol: model.FastCGI},
}

var backendProtocol = feature.Setting[protocol]{
	Annotation: "backend-protocol", Parse: parseProtocol, Risk: feature.Low,
	Doc: "The protocol of requests to the backend: HTTP, HTTPS, GRPC, GRPCS (gRPC with TLS) or FCGI (FastCGI), in upper or lower case. AUTO_HTTP is HTTPS for requests that clients make by https, and HTTP for others. " +
		"Without the annotation it is the `appProtocol` of the Service's port (see the ConfigMap key `use-app-protocol`), and HTTP if there is none.",
}

// usesTLS reports whether the annotation has requests to backends use TLS.
func usesTLS(v feature.Values) bool { return protocols[backendProtocol.Get(v)].TLS }

func parseProtocol(text string) (protocol, error) {
	p := protocol(strings.ToUpper(text))
	if p == "" {
		return http, nil
	}
	if _, known := protocols[p]; !known {
		return "", errors.New("must be HTTP, HTTPS, AUTO_HTTP, GRPC, GRPCS or FCGI")
	}
	return p, nil
}

// Feature is the protocol of requests to backends.
func Feature() feature.Feature {
	resources := parameterResources()
	resources.Variables = append(resources.Variables,
		resource.Variable{Name: resource.NewName(nameVariable)}, resource.Variable{Name: resource.NewName(certificateVariable), Kind: resource.PEM})
	return feature.Feature{
		Name: name,
		Doc:  "The protocol of requests to backends, the parameters of FastCGI, and TLS to backends.",
		Settings: []feature.AnySetting{
			backendProtocol, useAppProtocol, secret, verify, verifyDepth, verifyName, sendName, tlsVersions, tlsCiphers, locationOnly,
			index, params, allowedNames,
		},
		Route: route,
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.FastCGIParameters = allowedNames.Get(v)
		},
		Lua:        lua,
		Resources:  resources,
		Directives: directives(),
	}
}

// policy is what backend_protocol.lua reads of a route. The profile has digests of both.
type policy struct {
	// Name is the name in the certificate of the backend, for SNI and for the verification.
	Name string `json:"name,omitempty"`
	// Certificate is the name of the content with the certificate and its key.
	Certificate string `json:"certificate,omitempty"`
	// FastCGI is set with that protocol alone.
	FastCGI *parameters `json:"fastcgi,omitempty"`
}

func route(v feature.Values, out *feature.RouteOut) {
	own, problem := connectionOf(v)
	if problem != nil {
		// Also without TLS: ingress-nginx closes the paths as well.
		out.Deny(secret, problem.code, problem.message)
		return
	}
	fastCGI := checkParameters(v, out)
	asked := protocolOf(v, out.AppProtocol)
	out.Speaks = func(appProtocol string) bool { return protocolOf(v, appProtocol) == asked }
	p, way := &out.Route.Profile, protocols[asked]
	if !way.TLS {
		p.Protocol = way.Protocol
		if way.Protocol == model.FastCGI && fastCGI != nil {
			// In no other profile are the variables there.
			feature.AddOfProfile(out.Route, name, policy{FastCGI: fastCGI})
		}
		if verify.Get(v) {
			out.Ignore(verify, finding.InvalidValue, "it has no effect with backend-protocol "+string(asked), "requests are sent without TLS")
		}
		for _, s := range []feature.AnySetting{secret, verifyName, sendName, tlsVersions, tlsCiphers} {
			if v.IsWritten(s) {
				out.Warn(s, finding.NoEffect, "requests are sent without TLS: backend-protocol must be HTTPS, GRPCS or AUTO_HTTP", "it has no effect")
			}
		}
		return
	}
	if !usesTLS(v) && v.Rejects(verify) {
		// With the annotation, the value denied before.
		out.Deny(verify, finding.InvalidValue, "the Service's port has appProtocol "+finding.Shorten(out.AppProtocol)+": must be on or off, or backend-protocol HTTP")
		return
	}
	c := own
	if first, ok := inherited(v, out.Host); ok && !own.hasSecret {
		c = first
		for _, s := range []feature.AnySetting{verifyName, sendName, tlsVersions, tlsCiphers} {
			if v.IsWritten(s) {
				out.Warn(s, finding.NoEffect, "another Ingress of the host has a "+secret.Annotation+", which applies to all paths of the host in its namespace with all that goes with it",
					"it has no effect; a "+secret.Annotation+" of its own, or the key "+locationOnly.Key+", changes that")
			}
		}
	} else if c.sendsName && c.name == defaultName && v.IsWritten(sendName) {
		out.Warn(sendName, finding.Unexpected, "the name that is sent is "+defaultName+", as in ingress-nginx: "+verifyName.Annotation+" sets another one", "backends may not know the name")
	}
	if verify.Get(v) && !c.verifies {
		// Never an unverified connection instead. A Secret that can't be read denies already.
		if secret.Get(v).Name == "" {
			out.Deny(verify, finding.MissingObject, "the certificate of the backend can't be verified without a CA: "+secret.Annotation+" must name a Secret with "+caKey)
		}
		return
	}
	p.Protocol, p.TLS, p.AsClient = way.Protocol, way.TLS, way.AsClient
	c.write(out)
}

// inherited is what another Ingress of the host and namespace says, the oldest one with a
// Secret, unless the key is true. It is false if there is none, or if it can't be used, which
// that Ingress's own routes report.
func inherited(v feature.Values, host feature.Host) (connection, bool) {
	if locationOnly.Get(v) || host.First == nil {
		return connection{}, false
	}
	first, ok := host.First(secret)
	if !ok {
		return connection{}, false
	}
	c, problem := connectionOf(first)
	return c, problem == nil
}

// write writes the connection into a route with TLS.
func (c connection) write(out *feature.RouteOut) {
	p := &out.Route.Profile
	*p = p.With(versions.To(int64(c.versions)), ciphers.InOrder(c.ciphers))
	var set policy
	if c.verifies {
		*p = p.With(verification.To(1), depth.To(int64(c.depth)), authorities.Contains(c.authorities))
		out.Route.Files = append(out.Route.Files, c.authorities)
	}
	if c.sendsName {
		*p = p.With(serverName.To(1))
	}
	if c.verifies || c.sendsName {
		set.Name = c.name
		*p = p.With(tlsName.Holds(c.name))
	}
	if c.certificate.Name != "" {
		set.Certificate = feature.Attach(out.Route, c.certificate)
		*p = p.With(certificate.Holds(c.certificate.Name), certificateKey.Holds(c.certificate.Name))
	}
	if set != (policy{}) {
		feature.AddOfProfile(out.Route, name, set)
	}
}
