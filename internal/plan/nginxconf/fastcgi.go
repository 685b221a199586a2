package nginxconf

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/model/resource"
)

// A parameter is one that FastCGI backends get. An optional one is left out while it is empty.
type parameter struct {
	Name, Value string
	Optional    bool
}

// usualParameters are those that all FastCGI backends get: those of CGI/1.1, and what PHP and
// programs for ingress-nginx expect besides. DOCUMENT_ROOT is that of ingress-nginx, where
// nothing is.
func usualParameters() []parameter {
	return []parameter{
		{Name: "GATEWAY_INTERFACE", Value: "CGI/1.1"},
		{Name: "SERVER_SOFTWARE", Value: "nginx"},
		{Name: "SERVER_PROTOCOL", Value: "$server_protocol"},
		{Name: "SERVER_NAME", Value: "$host"},
		{Name: "SERVER_ADDR", Value: "$server_addr"},
		{Name: "SERVER_PORT", Value: "$hg_port"},
		{Name: "REMOTE_ADDR", Value: "$remote_addr"},
		{Name: "REMOTE_PORT", Value: "$remote_port"},
		{Name: "REQUEST_METHOD", Value: "$request_method"},
		{Name: "REQUEST_SCHEME", Value: "$scheme"},
		{Name: "REQUEST_URI", Value: "$hg_target"},
		{Name: "QUERY_STRING", Value: "$query_string"},
		{Name: "CONTENT_TYPE", Value: "$content_type"},
		{Name: "CONTENT_LENGTH", Value: "$content_length"},
		{Name: "DOCUMENT_ROOT", Value: "/usr/share/nginx/html"},
		{Name: "DOCUMENT_URI", Value: "$document_uri"},
		{Name: "SCRIPT_NAME", Value: "$fastcgi_script_name"},
		{Name: "HTTPS", Value: "$https", Optional: true},
		{Name: "REDIRECT_STATUS", Value: "200"},
	}
}

func indexOf(list []parameter, name string) int {
	return slices.IndexFunc(list, func(p parameter) bool { return p.Name == name })
}

// withParameters declares those that the administrator allows, with variables of their names.
func withParameters(r resource.Resources, names names.Parameters) resource.Resources {
	r.Variables, r.Parameters = slices.Clone(r.Variables), slices.Clone(r.Parameters)
	for _, name := range names.Names() {
		v := resource.NewName("hg_fastcgi_" + strings.ToLower(name))
		r.Variables = append(r.Variables, resource.Variable{Name: v})
		r.Parameters = append(r.Parameters, resource.Parameter{Name: resource.NewParameterName(name), Variable: v})
	}
	return r
}

// parametersOf are the usual parameters and those that features declare, each once: a backend
// may take the first or the last of two.
func parametersOf(r resource.Resources) []parameter {
	list := usualParameters()
	for _, declared := range r.Parameters {
		name, value := declared.Name.String(), "$"+declared.Variable.String()
		if i := indexOf(list, name); i >= 0 {
			list[i].Value = value
		} else {
			list = append(list, parameter{Name: name, Value: value, Optional: true})
		}
	}
	return list
}

// A variable is a declared one, and the text of its default.
type variable struct {
	Name    resource.Name
	Kind    resource.VariableKind
	Default string
}

// variablesOf are the declared variables, those of parameters only with FastCGI.
func variablesOf(r resource.Resources, fastCGI bool) []variable {
	usual, list := usualParameters(), make([]variable, 0, len(r.Variables))
	for _, declared := range r.Variables {
		v := variable{declared.Name, declared.Kind, declared.Default.String()}
		of := slices.IndexFunc(r.Parameters, func(p resource.Parameter) bool { return p.Variable == declared.Name })
		if of >= 0 && !fastCGI {
			continue
		}
		if of >= 0 {
			if i := indexOf(usual, r.Parameters[of].Name.String()); i >= 0 {
				v.Default = usual[i].Value
			}
		}
		list = append(list, v)
	}
	return list
}
