package feature

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Reader gives a feature the values of its settings, and takes down what was
// wrong with them.
type Reader struct {
	// Prefix stands before the names of annotations, with its slash.
	prefix      string
	annotations map[string]string
	config      *Config
	// values are those of annotations that were read already: each is parsed
	// once.
	values   map[string]any
	problems []Problem
	denied   bool
}

// A Problem is a bad value.
type Problem struct {
	// Field is the annotation's whole name, or the key.
	Field   string
	Message string
	// Unknown is set for a key that no feature declares.
	Unknown bool
	Effect  string
}

// NewReader reads the annotations of one Ingress over the values of config. One
// Reader may serve many routes of it.
// With nil annotations it reads only config.
func NewReader(prefix string, annotations map[string]string, config *Config) *Reader {
	return &Reader{prefix: prefix + "/", annotations: annotations, config: config}
}

// Problems are the bad values that were met, each once.
func (r *Reader) Problems() []Problem { return r.problems }

// Denied tells whether a bad value denies the routes.
func (r *Reader) Denied() bool { return r.denied }

func (r *Reader) annotation(name string) (string, bool) {
	if r.annotations == nil {
		return "", false
	}
	text, ok := r.annotations[r.prefix+name]
	return strings.TrimSpace(text), ok
}

// remember keeps the value of an annotation for whoever asks next. An annotation
// is declared by one Setting only.
func (r *Reader) remember(name string, value any) {
	if r.values == nil {
		r.values = map[string]any{}
	}
	r.values[name] = value
}

func (r *Reader) invalid(name, text string, err error, on OnInvalid) {
	effect := "the default is used"
	if on == Deny {
		r.denied = true
		effect = "the paths of this Ingress answer 503"
	}
	r.problems = append(r.problems, Problem{Field: r.prefix + name, Message: badValue(text, err), Effect: effect})
}

// What a Problem quotes, in bytes: the text is a tenant's, and so may be what
// its parser says of it.
const (
	mostValue = 80
	mostError = 300
)

func badValue(text string, err error) string {
	return fmt.Sprintf("%q is no valid value: %s", cut(text, mostValue), cut(strings.ToValidUTF8(err.Error(), "�"), mostError))
}

// cut shortens a text, and leaves no broken character at its end.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// A Config is the parsed content of the ConfigMap.
type Config struct {
	values map[string]any
}

// NewConfig parses a ConfigMap's data. A bad value is left out and told.
func NewConfig(features []Feature, data map[string]string) (*Config, []Problem) {
	declared := map[string]Declared{}
	for _, f := range features {
		for _, s := range f.Settings {
			if key := s.Declaration().Key; key != "" {
				declared[key] = s
			}
		}
	}
	config := &Config{values: map[string]any{}}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(data)) {
		setting, ok := declared[key]
		if !ok {
			problems = append(problems, Problem{
				Field: key, Message: "this key is not known", Unknown: true, Effect: "it does nothing",
			})
			continue
		}
		text := strings.TrimSpace(data[key])
		value, err := setting.check(text)
		if err != nil {
			problems = append(problems, Problem{Field: key, Message: badValue(text, err), Effect: "the default is used"})
			continue
		}
		config.values[key] = value
	}
	return config, problems
}
