// Package balancing chooses how the requests to a backend are spread over its
// endpoints.
package balancing

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/syntax/quantity"
	"github.com/headgate/headgate/internal/syntax/template"
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
		Annotation: "upstream-hash-by-subset", Needs: byHash, Parse: feature.Bool,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "Sends the requests of upstream-hash-by to a random endpoint of a group instead of to a single endpoint.",
	}
	hashBySubsetSize = feature.Setting[int]{
		Annotation: "upstream-hash-by-subset-size", Needs: feature.NeedsTrue(hashBySubset), Default: defaultSubset, Parse: subsetSize,
		Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
		Doc: "The number of endpoints in a group of upstream-hash-by-subset. 0 means 3.",
	}
)

// byHash is what the annotations of groups act beside.
var byHash = feature.Needs(hashBy, func(v feature.Values) bool { return v.IsSet(hashBy) && !v.Rejects(hashBy) })

var slowStart = feature.Setting[time.Duration]{
	Annotation: "slow-start", Parse: parseSlowStart,
	Scope: feature.ScopeBackend, Merge: feature.MergeOwner, Risk: feature.Low,
	Doc: "The time in which an endpoint that is added gets its share of the requests: a tenth of it at first, and the whole at the end. Retries, and sessions that " +
		"have begun, do not count. Endpoints get it at once if no other was there before, or if the backend has more than 1000; 0 is off. It has no effect with upstream-hash-by.",
}

const (
	minSlowStart = time.Second
	maxSlowStart = 15 * time.Minute
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
		Settings: []feature.AnySetting{loadBalance, hashBy, hashBySubset, hashBySubsetSize, slowStart},
		Backend:  backend,
		Lua:      lua,
		Resources: resource.Resources{
			// The endpoints of backends with slow-start; the backend that was not used for the
			// longest time is dropped first.
			Dictionaries: []resource.Dictionary{{Name: resource.NewName("hg_starts"), Size: 2 << 20}},
		},
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
		if slowStart.Get(v) != 0 {
			out.Ignore(slowStart, finding.InvalidValue, "slow-start has no effect with upstream-hash-by: each key has its endpoint", "an endpoint that is added gets its share at once")
		}
		return
	}
	if d := slowStart.Get(v); d != 0 {
		out.Balancing.SlowStart = model.Policy{Feature: name, Value: d.Seconds()}
	}
	switch algorithm := loadBalance.Get(v); algorithm {
	case ewma, leastConn, random:
		pick(out, settings{Algorithm: algorithm})
	case chash, chashSubset:
		out.Ignore(loadBalance, finding.InvalidValue, fmt.Sprintf("%s has no effect without upstream-hash-by", algorithm), "using round_robin")
	case stickyBalanced, stickyPersistent:
		out.Ignore(loadBalance, finding.InvalidValue, fmt.Sprintf("%s has no effect: sessions are kept by the annotation affinity", algorithm), "using round_robin")
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
	template, err := template.Parse(text, false)
	if err != nil {
		return "", err
	}
	packed, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encode the template: %w", err)
	}
	return string(packed), nil
}

func parseSlowStart(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := quantity.Duration(text)
	if err == nil && d != 0 && (d < minSlowStart || d > maxSlowStart) {
		err = errors.New("must be 0, or from 1s to 15m")
	}
	return d, err
}
