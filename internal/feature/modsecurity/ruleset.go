package modsecurity

import (
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A ruleSet is what a route's requests are inspected by. Contents without a name are absent.
type ruleSet struct {
	// tenant are the rules of a tenant, base those of the administrator or Headgate, and
	// settings those of the core rules, or what removes them.
	tenant, base, settings model.Content
	// core are the core rules. They are tried with all rule sets, since all locations inherit
	// them as soon as one route wants them.
	core model.Content
	// wantsCore is set where they apply.
	wantsCore bool
	// engine is what explain says of them.
	engine engine
}

// An engine is what ModSecurity does with requests that rules refuse.
type engine int

const (
	// engineUnknown may refuse them.
	engineUnknown engine = iota
	engineDetects
	engineOff
)

var engineDirective = regexp.MustCompile(`(?im)^[ \t]*"?SecRuleEngine"?[ \t]+"?(On|Off|DetectionOnly)\b`)

// engineOf is that of texts the first of which with a SecRuleEngine counts, and in it the last
// one. Without any, ModSecurity does not refuse.
func engineOf(texts ...string) engine {
	for _, text := range texts {
		all := engineDirective.FindAllStringSubmatch(text, -1)
		if len(all) == 0 {
			continue
		}
		switch strings.ToLower(all[len(all)-1][1]) {
		case "off":
			return engineOff
		case "detectiononly":
			return engineDetects
		}
		return engineUnknown
	}
	return engineDetects
}

// Where the core rules are: in images for Kubernetes, or by Debian's package.
const (
	imageFolder    = "/etc/nginx/owasp-modsecurity-crs/"
	debianSettings = "/etc/modsecurity/crs/"
	debianRules    = "/usr/share/modsecurity-crs/rules/"
)

// withoutCoreRules removes the core rules, by their IDs. Rules of others have no such IDs.
const withoutCoreRules = "SecRuleRemoveById 901000-999999 9001000-9009999\n"

// ruleSetOf is false if it was denied.
func ruleSetOf(v feature.Values, out *feature.RouteOut) (s ruleSet, ok bool) {
	own, everywhere := snippet.Get(v), enabledByKey(v)
	includes, by := false, feature.AnySetting(coreRules)
	if everywhere {
		s, includes = byKeys(v)
	}
	if own.text != "" {
		s.tenant = model.NewContent([]byte(bounds + own.text))
	} else if !everywhere {
		s.base = model.NewContent([]byte(base))
	}
	if !includes {
		s.engine = engineOf(own.text, string(s.base.Bytes))
	}
	if s.wantsCore {
		by = coreRulesKey
	}
	s.wantsCore = s.wantsCore || coreRules.Get(v) || own.core
	switch complete := s.addCore(v, includes); {
	case !complete && includes:
		out.Deny(by, finding.Conflict, "the key "+snippetKey.Key+" includes files that may have the core rules themselves: it must not include others than "+coreInclude)
		return s, false
	case !complete:
		out.Deny(by, finding.MissingCapability, "the core rules of OWASP are not installed (on Debian and Ubuntu the package modsecurity-crs)")
		return s, false
	}
	return s, true
}

// byKeys are the rules of the keys, without addCore. It reports whether they include other files.
func byKeys(v feature.Values) (s ruleSet, includes bool) {
	key, text := snippetKey.Get(v), base
	if key.text != "" {
		text = key.text
	}
	return ruleSet{base: model.NewContent([]byte(text)), wantsCore: coreRulesKey.Get(v) || key.core}, key.includes
}

// addCore adds the core rules, or what removes them. It is false if they are wanted and there
// are none, or if rules that include other files want them.
func (s *ruleSet) addCore(v feature.Values, includes bool) bool {
	settings, rules := coreFiles(v)
	if s.wantsCore && (rules == "" || includes) {
		return false
	}
	if !s.wantsCore {
		settings = withoutCoreRules
	}
	s.settings = model.NewContent([]byte(settings))
	if rules != "" && !includes {
		s.core = model.NewContent([]byte(rules))
	}
	return true
}

// enabledByKey reports whether ModSecurity inspects all requests but those of Ingresses that
// say otherwise.
func enabledByKey(v feature.Values) bool { return feature.Setting[bool]{Key: enable.Key}.Get(v) }

// coreFiles are the settings of the core rules, which each location has, and the rules. They
// are empty if there are none.
func coreFiles(v feature.Values) (settings, rules string) {
	switch {
	case v.Has(feature.CoreRules):
		settings = "Include " + imageFolder + "crs-setup.conf\n"
		rules = "Include " + imageFolder + "rules/*.conf\n"
	case v.Has(feature.DebianCoreRules):
		settings = "Include " + debianSettings + "crs-setup.conf\n"
		rules = "Include " + debianSettings + "REQUEST-900-*.conf\n" +
			"Include " + debianRules + "*.conf\n" + "Include " + debianSettings + "RESPONSE-999-*.conf\n"
	default:
		return "", ""
	}
	if v.Has(feature.UnicodeMapping) {
		rules = "SecUnicodeMapFile /etc/nginx/unicode.mapping 20127\n" + rules
	}
	return settings, rules
}

// profile is p with the rules.
func (s ruleSet) profile(p model.Profile) model.Profile {
	p = p.With(on.To(1), tenantRules.Contains(s.tenant), baseRules.Contains(s.base), coreSettings.Contains(s.settings))
	if s.wantsCore {
		p = p.With(sharedRules.Contains(s.core))
	}
	return p
}

func (s ruleSet) files() []model.Content {
	list := []model.Content{s.tenant, s.base, s.settings}
	if s.wantsCore {
		list = append(list, s.core)
	}
	return slices.DeleteFunc(list, func(c model.Content) bool { return c.Name == "" })
}

// tryKey has NGINX read the rules of the key by themselves, and returns nil if there are none.
func tryKey(v feature.Values) error {
	if !enabledByKey(v) || snippetKey.Get(v).text == "" {
		return nil
	}
	s, includes := byKeys(v)
	if !s.addCore(v, includes) {
		return nil // The routes say so.
	}
	return v.Try(s.trial())
}

// try has NGINX read the rules. It denies if NGINX rejects them. What it says of the key is
// reported by process.
func (s ruleSet) try(v feature.Values, out *feature.RouteOut) bool {
	err := v.Try(s.trial())
	if err == nil {
		return true
	}
	if tryKey(v) != nil {
		out.DenyByKey(snippetKey)
		return false
	}
	var alone error
	if s.tenant.Name != "" && !feature.IsUntested(err) {
		others := s
		others.tenant = model.Content{}
		if others.base.Name != "" {
			alone = v.Try(others.trial())
		}
		if alone == nil {
			out.Deny(snippet, finding.InvalidValue, snippet.Get(v).withPlace(oneLine(err)))
			return false
		}
	}
	if feature.IsUntested(err) || feature.IsUntested(alone) {
		out.Deny(enable, finding.Waits, notTested)
		return false
	}
	out.Deny(enable, finding.InvalidValue, "ModSecurity does not start: "+oneLine(err))
	return false
}

// The reason is in the log of the controller: it has the names of files, and other ones each time.
const notTested = "NGINX could not test the rules yet, and will do so again"

// withoutInput leaves out what ModSecurity read: tenants see the message.
func withoutInput(message string) string {
	for _, begins := range []string{"Invalid input", "Expecting", "got:"} {
		message, _, _ = strings.Cut(message, begins)
	}
	return strings.TrimSpace(message)
}

func (s ruleSet) trial() feature.Trial {
	var shared model.Profile
	files := s.files()
	if s.core.Name != "" {
		shared, files = shared.With(sharedRules.Contains(s.core)), append(files, s.core)
	}
	return feature.Trial{Files: files, Lines: func(folder string) (http, location []string) {
		declared := directives().In(folder)
		return declared.SharedLines([]model.Profile{shared}), declared.Lines(s.profile(model.Profile{}))
	}}
}

// write puts the rules into the route.
func (s ruleSet) write(out *feature.RouteOut) {
	out.Route.Profile = s.profile(out.Route.Profile)
	out.Route.Files = append(out.Route.Files, s.files()...)
}
