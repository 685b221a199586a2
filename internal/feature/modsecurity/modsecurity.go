// Package modsecurity has NGINX's module ModSecurity inspect requests, by rules of Headgate's,
// of OWASP, of the administrator and, where snippets are allowed, of tenants.
package modsecurity

import (
	"embed"
	"errors"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/syntax/template"
)

const (
	name = "modsecurity"
	// idVariable is the one with the transaction's ID.
	idVariable = "hg_modsecurity_id"
)

//go:embed *.lua
var lua embed.FS

// maxRuleSets bounds how many there are: NGINX reads a rule set for each location of each
// profile with it.
const maxRuleSets = 20

// maxProfiles bounds the profiles with rules of tenants: those may be 5 MB for each.
const maxProfiles = 50

var (
	enable = feature.Setting[bool]{
		Annotation: "enable-modsecurity", Key: "enable-modsecurity", Parse: feature.Optional(feature.Bool), OnInvalid: feature.Deny, Risk: feature.Low,
		Doc: "Has ModSecurity inspect requests. Without rules that say otherwise it only reports, in the audit log. See [modsecurity.md](modsecurity.md).",
	}
	coreRules = feature.Setting[bool]{
		Annotation: "enable-owasp-core-rules", Parse: feature.Optional(feature.Bool), OnInvalid: feature.Deny, When: enable.Get, Risk: feature.Low,
		Doc: "Has ModSecurity apply the core rules of OWASP too. It can't switch off what the key enable-owasp-modsecurity-crs switches on.",
	}
	coreRulesKey = feature.Setting[bool]{
		Key: "enable-owasp-modsecurity-crs", Parse: feature.Optional(feature.Bool), OnInvalid: feature.Deny, When: enabledEverywhere,
		Doc: "Has ModSecurity apply the core rules of OWASP too, on all paths that it inspects. Only together with the key enable-modsecurity.",
	}
	snippet = feature.Setting[rules]{
		Annotation: "modsecurity-snippet", Parse: parseRules, OnInvalid: feature.Deny, When: enable.Get, Risk: feature.Critical, Snippet: true,
		Doc: "Rules for ModSecurity. They stand before those of the key modsecurity-snippet, or instead of Headgate's own while the key enable-modsecurity is not true. " +
			"Only with allow-snippet-annotations, and only what [modsecurity.md](modsecurity.md) lists.",
	}
	snippetKey = feature.Setting[adminRules]{
		Key: "modsecurity-snippet", Parse: parseAdminRules,
		Doc: "Rules for ModSecurity instead of Headgate's own, while the key enable-modsecurity is true. They may have all directives.",
	}
	transactionID = feature.Setting[template.Template]{
		Annotation: "modsecurity-transaction-id", Parse: parseID, Risk: feature.High,
		Doc: "What ModSecurity's logs name a request by, such as $req_id. By default ModSecurity makes it.",
	}
)

// The directives of profiles with ModSecurity. Of several files in a location, the first one
// with a setting counts. The core rules are too many for each location: all inherit them, and
// those that don't want them remove them by their IDs, which costs no memory.
var (
	on = directive.Directive{Name: "modsecurity", Plain: true, Kind: directive.OnOff, Omits: true, Samples: []int64{0, 1}}
	// tenantRules are of a tenant, and baseRules of the administrator or Headgate.
	tenantRules = boundedRulesFile("modsecurity_snippet")
	baseRules   = rulesFile("modsecurity_rules")
	// coreSettings are those of the core rules, or remove these.
	coreSettings = rulesFile("core_rules_settings")
	sharedRules  = directive.Directive{Name: "core_rules", As: rulesFileName, Plain: true, Kind: directive.File, Absolute: true, Shared: true}
	idDirective  = directive.Directive{Name: "modsecurity_transaction_id", Plain: true, Kind: directive.Variable, Variable: idVariable}
)

const rulesFileName = "modsecurity_rules_file"

func rulesFile(name string) directive.Directive {
	return directive.Directive{Name: name, As: rulesFileName, Plain: true, Kind: directive.File, Absolute: true}
}

func boundedRulesFile(name string) directive.Directive {
	d := rulesFile(name)
	d.Most, d.InMost = maxRuleSets, maxProfiles
	return d
}

func directives() directive.List {
	return directive.List{on, idDirective, tenantRules, baseRules, coreSettings, sharedRules}
}

// Feature is ModSecurity.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Has ModSecurity inspect requests.",
		Settings: []feature.AnySetting{enable, coreRules, coreRulesKey, snippet, snippetKey, transactionID},
		Route:    route,
		Process:  process,
		Predict: prediction.ByPhase{
			prediction.GuardPhase: predict,
		},
		Directives: directives(),
		Lua:        lua,
		Resources:  resource.Resources{Variables: []resource.Variable{{Name: resource.NewName(idVariable)}}},
	}
}

// enabledEverywhere reports whether the keys apply to a route.
func enabledEverywhere(v feature.Values) bool { return enabledByKey(v) && enable.Get(v) }

// policy is what modsecurity.lua reads of a route. The profile has the rest.
type policy struct {
	ID template.Template `json:"id,omitempty"`
	// engine is for explain.
	engine engine
}

// predict says whether ModSecurity may refuse requests. What rules do by ctl is not known.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	switch p.engine {
	case engineOff:
		return prediction.Answer{Why: "ModSecurity inspects nothing: the last SecRuleEngine is Off (enable-modsecurity)"}
	case engineDetects:
		return prediction.Answer{Why: "ModSecurity only reports, unless a rule has ctl:ruleEngine=On: SecRuleEngine must be On in modsecurity-snippet (enable-modsecurity)"}
	}
	return prediction.Answer{Why: "403, or another status that a rule has, if ModSecurity refuses the request (enable-modsecurity)"}
}

func route(v feature.Values, out *feature.RouteOut) {
	if !enable.Get(v) {
		warnIdle(v, out)
		return
	}
	if !v.Has(feature.ModSecurity) {
		out.Deny(enable, finding.MissingCapability, "this NGINX does not have the module ModSecurity (on Debian and Ubuntu the package libnginx-mod-http-modsecurity)")
		return
	}
	if v.Rejects(snippet) || v.Rejects(coreRules) {
		return // This was reported, and denies.
	}
	if v.IsSet(snippet) && !feature.AllowsSnippets(v) {
		out.Deny(snippet, finding.NotAllowed, "rules of tenants are allowed only while the key allow-snippet-annotations is true")
		return
	}
	set, ok := ruleSetOf(v, out)
	if !ok {
		return
	}
	if !set.try(v, out) {
		return
	}
	set.write(out)
	p := policy{ID: transactionID.Get(v), engine: set.engine}
	if len(p.ID) > 0 {
		// One value: what the variable holds does not matter to NGINX.
		out.Route.Profile = out.Route.Profile.With(idDirective.Holds(idVariable))
	}
	// A route that gets ModSecurity is denied until NGINX has it, since it is a guard. One whose
	// rules change keeps the old ones that long.
	feature.Add(out.Route, name, p)
}

// warnIdle reports annotations that have no effect on what ModSecurity does not inspect.
func warnIdle(v feature.Values, out *feature.RouteOut) {
	const message, effect = "ModSecurity does not inspect these requests: enable-modsecurity must be true", "it has no effect"
	if v.IsSet(coreRules) && coreRules.Get(v) {
		out.Warn(coreRules, finding.Conflict, message, effect)
	}
	if v.IsSet(snippet) && !v.Rejects(snippet) {
		out.Warn(snippet, finding.Conflict, message, effect)
	}
}

// process reports keys without effect, and what NGINX says of the rules of the key. Routes with them are denied, and
// nginx.conf does not have them: NGINX would not start.
func process(v feature.Values, out *feature.ProcessOut) {
	if !enabledByKey(v) {
		const message, effect = "the key enable-modsecurity must be true", "it has no effect"
		if coreRulesKey.Get(v) {
			out.Warn(coreRulesKey, finding.Conflict, message, effect)
		}
		if snippetKey.Get(v).text != "" {
			out.Warn(snippetKey, finding.Conflict, message, effect)
		}
	}
	if !v.Has(feature.ModSecurity) {
		return
	}
	switch err := tryKey(v); {
	case err == nil:
	case feature.IsUntested(err):
		out.Deny(snippetKey, finding.Waits, notTested)
	default:
		out.Deny(snippetKey, finding.InvalidValue, withPlace(oneLine(err)))
	}
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9_${}-]{1,200}$`)

func parseID(text string) (template.Template, error) {
	if text == "" {
		return nil, nil
	}
	if !idForm.MatchString(text) {
		return nil, errors.New("must be at most 200 letters, digits and _-, and variables such as $req_id")
	}
	return template.Parse(text, false)
}

// The places in what the library says: the file is Headgate's, or an address in memory.
var (
	placeBefore = regexp.MustCompile(`^.*?Rules error\. File: \S+ Line: (\d+)\. Column: \d+\. *`)
	placeBehind = regexp.MustCompile(`^.*?directive (.*?)\.? *File: \S+ at line: (\d+);?$`)
)

// withPlace begins a message with the line that it is about.
func withPlace(message string) string {
	message = placeBefore.ReplaceAllString(message, "line $1: ")
	message = placeBehind.ReplaceAllString(message, "line $2: $1")
	if _, said, found := strings.Cut(message, `"modsecurity_rules_file" directive `); found {
		message = said
	}
	return strings.TrimSuffix(message, ";")
}

// oneLine makes NGINX's words fit a finding.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
