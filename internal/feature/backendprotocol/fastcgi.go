package backendprotocol

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/resource"
)

var (
	index = feature.Setting[string]{
		Annotation: "fastcgi-index", Needs: byFastCGI, Parse: feature.Optional(parseIndex), OnInvalid: feature.Deny, Risk: feature.Medium,
		Doc: "The name of a file that SCRIPT_NAME has behind a path that ends in a slash, with backend-protocol FCGI.",
	}
	params = feature.Setting[feature.ObjectName]{
		Annotation: "fastcgi-params-configmap", Needs: byFastCGI, Parse: feature.Optional(feature.Object), OnInvalid: feature.Deny, Refers: feature.ConfigMap, Risk: feature.Medium,
		Doc: "The ConfigMap, in the namespace of the Ingress, with parameters for FastCGI backends. They replace those of the same name that all such backends get. " +
			"Values can contain variables, also $document_root, which is the parameter DOCUMENT_ROOT, and $fastcgi_script_name. A parameter without a value is not sent. " +
			"The names are " + strings.Join(parameterNames(), ", ") + ", HTTP_HOST, HTTP_X_ with any capital letters, digits and underscores, " +
			"and those of the key " + allowedKey + ". " +
			"If the ConfigMap does not exist, or a name or a value is invalid, the paths answer 503.",
	}
	allowedNames = feature.Setting[names.Parameters]{
		Key: allowedKey, Parse: parseNames, Scope: feature.ScopeProcess,
		Doc: "The names of parameters that fastcgi-params-configmap may set besides the usual ones, separated by commas.",
	}
)

// byFastCGI is what the annotations of FastCGI act beside.
var byFastCGI = feature.Need{Setting: backendProtocol, What: "backend-protocol: FCGI", Met: func(v feature.Values) bool { return backendProtocol.Get(v) == fcgi }}

const allowedKey = "global-allowed-fastcgi-params"

// parseNames leaves out the names that all ConfigMaps may have.
func parseNames(text string) (names.Parameters, error) {
	list, err := feature.List(text)
	if err != nil {
		return names.Parameters{}, err
	}
	usual := parameterNames()
	list = slices.DeleteFunc(list, func(name string) bool { return slices.Contains(usual, name) })
	usual = append(usual, lengthParameter)
	for _, name := range list {
		if i := slices.IndexFunc(usual, func(one string) bool { return strings.EqualFold(one, name) }); i >= 0 {
			return names.Parameters{}, fmt.Errorf("%q: must not be %s, in upper or lower case", finding.Shorten(name), usual[i])
		}
	}
	return names.NewParameters(list...)
}

// parameterResources are what NGINX sends to FastCGI backends besides the usual parameters.
func parameterResources() (r resource.Resources) {
	for _, name := range parameterNames() {
		v := resource.NewName(variableOf(name))
		r.Variables = append(r.Variables, resource.Variable{Name: v})
		r.Parameters = append(r.Parameters, resource.Parameter{Name: resource.NewParameterName(name), Variable: v})
	}
	return r
}

// parameters are what fastcgi.lua reads of a route.
type parameters struct {
	Variables []assignment      `json:"variables,omitempty"`
	Headers   []assignment      `json:"headers,omitempty"`
	Host      template.Template `json:"host,omitempty"`
}

// An assignment gives a variable, or a header, a value.
type assignment struct {
	Name  string            `json:"name"`
	Value template.Template `json:"value"`
}

var indexForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,255}$`)

func parseIndex(text string) (string, error) {
	if !indexForm.MatchString(text) {
		return "", errors.New("must be at most 255 letters, digits and ._-")
	}
	return text, nil
}

// checkParameters rejects what is wrong with the ConfigMap, with any protocol.
func checkParameters(v feature.Values, out *feature.RouteOut) *parameters {
	object := params.Get(v)
	data, ok := feature.ConfigMapOf(v, params)
	if ok && object.Namespace != "" && object.Namespace != v.Origin().Namespace {
		out.Reject(params, finding.NotAllowed, "the ConfigMap must be in the namespace of the Ingress")
		return nil
	}
	p, key, problem := readParameters(data, index.Get(v), slices.Concat(parameterNames(), allowedNames.Get(v).Names()))
	if problem != "" {
		where := "ConfigMap " + object.String()
		if key != "" {
			where += ", " + quoted(key)
		}
		out.Reject(params, finding.InvalidValue, where+": "+problem)
		return nil
	}
	if p.Variables == nil && p.Headers == nil && p.Host == nil {
		return nil
	}
	return &p
}

// readParameters reads a ConfigMap's data. problem is empty if there is none.
func readParameters(data map[string]string, index string, names []string) (p parameters, key, problem string) {
	if key, problem = bounded(data, names); problem != "" {
		return parameters{}, key, problem
	}
	root, err := documentRoot(data)
	if err != nil {
		return parameters{}, documentRootName, err.Error()
	}
	own := resolver{root: root, index: index}
	if _, set := data[scriptName]; index != "" && !set {
		p.Variables = append(p.Variables, assignment{variableOf(scriptName), own.resolve(template.Template{{Variable: scriptNameVariable}})})
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value, err := own.parse(strings.TrimSpace(data[key]))
		if key == documentRootName {
			value = root
		}
		if err != nil {
			return parameters{}, key, err.Error()
		}
		switch {
		case key == hostParameter:
			p.Host = value
		case slices.Contains(names, key):
			p.Variables = append(p.Variables, assignment{variableOf(key), value})
		case headerForm.MatchString(key):
			p.Headers = append(p.Headers, assignment{headerOf(key), value})
		}
	}
	return p, "", ""
}
