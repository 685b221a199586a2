// Package balancing chooses how the requests to a backend are spread over its
// endpoints.
package balancing

import (
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

const name = "balancing"

//go:embed *.lua
var lua embed.FS

// The algorithms. Of those that need another annotation, picker.lua knows chash alone.
const (
	roundRobin       = "round_robin"
	ewma             = "ewma"
	leastConn        = "least_conn"
	random           = "random"
	chash            = "chash"
	chashSubset      = "chashsubset"
	stickyBalanced   = "sticky_balanced"
	stickyPersistent = "sticky_persistent"
)

var algorithms = []string{roundRobin, ewma, leastConn, random, chash, chashSubset, stickyBalanced, stickyPersistent}

var (
	loadBalance = feature.Setting[string]{
		Annotation: "load-balance", Key: "load-balance", Default: roundRobin, Parse: algorithm,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "How requests are spread over the endpoints: round_robin in turn; ewma to the faster one of two random endpoints, by the moving average of their response " +
			"times; least_conn to the one with the fewest requests of the same worker in progress; random to the one of two random endpoints with fewer. " +
			"chash and chashsubset need upstream-hash-by, which has precedence anyway; without it, and with sticky_balanced and sticky_persistent, round_robin is used.",
	}
	hashBy = feature.Setting[string]{
		Annotation: "upstream-hash-by", Parse: parseKey,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.High,
		Doc: "Sends requests with the same value of this text, which contains variables such as $request_uri, to the same endpoint, by a consistent hash: a change of " +
			"the endpoints moves only the share of values that it must. It has precedence over load-balance.",
	}
	hashBySubset = feature.Setting[bool]{
		Annotation: "upstream-hash-by-subset", Parse: feature.Bool,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "Sends the requests of upstream-hash-by to a random endpoint of a group instead of to a single endpoint.",
	}
	hashBySubsetSize = feature.Setting[int]{
		Annotation: "upstream-hash-by-subset-size", Default: defaultSubset, Parse: subsetSize,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "The number of endpoints in a group of upstream-hash-by-subset. 0 means 3.",
	}
)

const (
	defaultSubset = 3
	// maxSubset is far above the number of endpoints that one backend can have.
	maxSubset = 100000
	// maxKey bounds the text of upstream-hash-by, in bytes.
	maxKey = 1000
)

// Feature is load balancing.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Spreads requests over the endpoints of a backend.",
		Settings: []feature.AnySetting{loadBalance, hashBy, hashBySubset, hashBySubsetSize},
		Backend:  backend,
		Lua:      lua,
	}
}

// settings is what picker.lua reads of a backend.
type settings struct {
	Algorithm string `json:"algorithm"`
	// Key is the template of the hashed text as JSON: settings must be comparable.
	Key string `json:"key,omitempty"`
	// Subset is the number of endpoints in a group, 0 for single endpoints.
	Subset int `json:"subset,omitempty"`
}

func backend(v feature.Values, out *feature.BackendOut) {
	if key := hashBy.Get(v); key != "" {
		s := settings{Algorithm: chash, Key: key}
		if hashBySubset.Get(v) {
			s.Subset = hashBySubsetSize.Get(v)
		}
		pick(out, s)
		return
	}
	switch algorithm := loadBalance.Get(v); algorithm {
	case ewma, leastConn, random:
		pick(out, settings{Algorithm: algorithm})
	case chash, chashSubset:
		out.Warn(loadBalance, finding.InvalidValue, fmt.Sprintf("%s has no effect without upstream-hash-by", algorithm), "using round_robin")
	case stickyBalanced, stickyPersistent:
		out.Warn(loadBalance, finding.InvalidValue, fmt.Sprintf("%s has no effect: sessions are kept by the annotation affinity", algorithm), "using round_robin")
	}
}

func pick(out *feature.BackendOut, s settings) {
	out.Balancing.Picker = model.Policy{Feature: name, Value: s}
}

func algorithm(text string) (string, error) {
	if text == "" {
		return roundRobin, nil
	}
	if !slices.Contains(algorithms, text) {
		return "", fmt.Errorf("must be one of %s", strings.Join(algorithms, ", "))
	}
	return text, nil
}

func subsetSize(text string) (int, error) {
	n, err := feature.Int(0, maxSubset)(text)
	if n == 0 {
		n = defaultSubset
	}
	return n, err
}

var keyForm = regexp.MustCompile(`^[A-Za-z0-9_${}-]+$`)

// parseKey returns the template of the hashed text as JSON, empty for none.
func parseKey(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if len(text) > maxKey || !keyForm.MatchString(text) {
		return "", fmt.Errorf("must be at most %d letters, digits and -_${}", maxKey)
	}
	// The same address gives the same endpoint in either form.
	text = strings.NewReplacer("$binary_remote_addr", "$remote_addr", "${binary_remote_addr}", "${remote_addr}").Replace(text)
	template, err := feature.ParseTemplate(text, false)
	if err != nil {
		return "", err
	}
	packed, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encode the template: %w", err)
	}
	return string(packed), nil
}
