package externalauth

import (
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/resource"
)

// callHeaders are the headers that describe the request to the service. external_auth.lua
// sets their variables. A header without a value is not sent, so that no header of the
// client reaches the service under that name.
var callHeaders = []string{
	"X-Auth-Request-Redirect", "X-Forwarded-Host", "X-Forwarded-Method", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Scheme",
	"X-Forwarded-Uri", "X-Headgate-Checks", "X-Original-URI", "X-Original-URL", "X-Scheme",
}

// resources are the locations of the call to the service, one for each check, and the
// cache of its responses.
func resources() resource.Resources {
	variable := func(name string) resource.Variable {
		return resource.Variable{Name: resource.NewName("hg_call_" + name)}
	}
	method, target := variable("method"), variable("uri")
	method.Default, target.Kind = resource.NewWord("GET"), resource.Target
	host, name := variable("host"), variable("name")
	r := resource.Resources{
		// The dictionary drops the least recently used entry first.
		Dictionaries: []resource.Dictionary{{Name: resource.NewName("hg_checks"), Size: 10 << 20}},
		Variables:    []resource.Variable{method, target, host, name},
	}
	headers := map[string]resource.Value{
		"Host": resource.VariableValue(host.Name.String()), "Connection": {}, "Content-Length": {}, "Proxy": {},
		"X-Forwarded-For":   resource.VariableValue("remote_addr"),
		"X-Original-Method": resource.VariableValue("request_method"),
		"X-Real-IP":         resource.VariableValue("remote_addr"),
		"X-Request-ID":      resource.VariableValue("req_id"),
		"X-Sent-From":       resource.WordValue("nginx-ingress-controller"),
	}
	for _, header := range callHeaders {
		v := variable("header_" + strings.ReplaceAll(strings.ToLower(header), "-", "_"))
		r.Variables = append(r.Variables, v)
		headers[header] = resource.VariableValue(v.Name.String())
	}
	for _, scheme := range []string{"http", "https"} {
		r.Upstreams = append(r.Upstreams, resource.Upstream{
			Name: resource.NewName("hg_check_" + scheme), Balancer: resource.NewHandler("headgate.call", "balance"), Keeps: scheme == "http",
		})
	}
	plain, secure := r.Upstreams[0].Name, r.Upstreams[1].Name
	for _, check := range []model.Check{model.CheckHTTP, model.CheckHTTPS, model.CheckVerified} {
		upstream := secure
		if check == model.CheckHTTP {
			upstream = plain
		}
		location := resource.Location{
			Name: resource.NewName("_check_" + check.String()), Upstream: upstream, TLS: upstream == secure, ServerName: name.Name,
			Verify: check == model.CheckVerified,
			Method: method.Name, Target: target.Name, HeaderFilter: resource.NewHandler("headgate.access", "auth_response"),
			AnswerFilter: resource.NewHandler("headgate.access", "answered"), AnswerBody: resource.NewHandler("headgate.access", "answered_body"),
		}
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			location.Headers = append(location.Headers, resource.Header{Name: resource.NewWord(header), Value: headers[header]})
		}
		r.Locations = append(r.Locations, location)
	}
	return r
}
