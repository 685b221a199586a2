package feature

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// A Config is the parsed content of the ConfigMap.
type Config struct {
	schema *Schema
	values map[string]any
	// denies are the settings whose key has a bad value that denies.
	denies []*schemaSetting
	// refers are the settings whose key names an object, and configMaps and secrets the data of
	// these by key, once they are attached.
	refers     []*schemaSetting
	configMaps map[string]map[string]string
	secrets    map[string]map[string][]byte
	// geoDatabases are attached too.
	geoDatabases []GeoDatabase
	// texts are the keys as they are written, and defined the names in the administrator's
	// text for the http block.
	texts   map[string]string
	defined nginxsyntax.Names
}

// Config parses a ConfigMap's data. A bad value is left out and reported.
func (s *Schema) Config(data map[string]string) (*Config, []Problem) {
	config := &Config{schema: s, values: map[string]any{}, texts: data}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(data)) {
		d := s.byKey[key]
		if d == nil {
			problems = append(problems, Problem{
				Field: key, Code: finding.UnknownKey, Message: "unknown key", Effect: "it has no effect",
			})
			continue
		}
		text := strings.TrimSpace(data[key])
		value, err := d.Parse(text)
		if err == nil {
			config.values[key] = value
			if name, is := value.(ObjectName); is && name.Name != "" {
				config.refers = append(config.refers, d)
			}
			continue
		}
		p := Problem{Field: key, Effect: d.unused(), Rejected: true}
		p.Code, p.Message = badValue(text, err)
		if d.OnInvalid == UseStrictest {
			config.values[key] = value
			p.Effect = fmt.Sprintf("using the strictest value, %s", cmp.Or(fmt.Sprint(value), "none"))
		}
		if d.OnInvalid == Deny {
			config.denies = append(config.denies, d)
			p.Effect, p.Denies = KeyDenies, true
		}
		problems = append(problems, p)
	}
	if text, ok := config.values[httpSnippetKey].(model.AdminText); ok {
		config.defined = nginxsyntax.Defined(text.String())
	}
	return config, problems
}

// KeyDenies is the effect of a key that denies.
const KeyDenies = "the paths that it applies to answer 503"

// References are the objects that keys refer to.
func (c *Config) References() []Reference {
	var list []Reference
	for _, d := range c.refers {
		list = append(list, Reference{d.Refers, c.values[d.Key].(ObjectName)})
	}
	return list
}

// Attach looks up the objects that keys refer to, and reports those that don't exist.
func (c *Config) Attach(objects Objects) (*Config, []Problem) {
	if len(c.refers) == 0 && len(objects.GeoDatabases) == 0 {
		return c, nil
	}
	attached := *c
	attached.geoDatabases = objects.GeoDatabases
	attached.configMaps, attached.secrets = map[string]map[string]string{}, map[string]map[string][]byte{}
	var problems []Problem
	for _, d := range c.refers {
		name := c.values[d.Key].(ObjectName)
		if attached.attach(d, name, objects) {
			continue
		}
		p := Problem{Field: d.Key, Code: finding.MissingObject, Message: fmt.Sprintf("%s %s does not exist", d.Refers, name), Effect: "the key has no effect", Rejected: true}
		if d.OnInvalid == Deny {
			p.Effect, p.Denies = KeyDenies, true
		}
		problems = append(problems, p)
	}
	return &attached, problems
}

// attach looks up the object of a key, and reports whether there is one.
func (c *Config) attach(d *schemaSetting, name ObjectName, objects Objects) (found bool) {
	if d.Refers == Secret {
		var data map[string][]byte
		if data, found = objects.Secret(name); found {
			c.secrets[d.Key] = data
		}
		return found
	}
	var data map[string]string
	if data, found = objects.ConfigMap(name); found {
		c.configMaps[d.Key] = data
	}
	return found
}

// Values are those of the ConfigMap alone.
func (c *Config) Values() Values { return Values{config: c} }

// httpSnippetKey is the key with the administrator's text for the http block.
const httpSnippetKey = "http-snippet"

// Defined are the names in the administrator's text for the http block.
func Defined(v Values) nginxsyntax.Names {
	if v.config == nil {
		return nginxsyntax.Names{}
	}
	return v.config.defined
}

// TextOf is a key as it is written in the ConfigMap, empty if it is not there: for features
// that compare what a tenant asks for with a key of another feature.
func TextOf(v Values, key string) string {
	if v.config == nil {
		return ""
	}
	return strings.TrimSpace(v.config.texts[key])
}
