package feature

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A Reader gives a feature the values of its settings, and takes down what was
// wrong with them.
type Reader struct {
	// Prefix stands before the names of annotations, with its slash.
	prefix      string
	annotations map[string]string
	origin      model.Origin
	objects     Objects
	host        Host
	config      *Config
	// values are those of annotations that were read already: each is parsed
	// once.
	values   map[string]any
	problems []Problem
	// denial is what a bad value does that denies, if it is not what it usually
	// does.
	denial    string
	denied    bool
	forbidden bool
	// recording is set while readings takes down what is read.
	recording bool
	readings  []Reading
}

// A Problem is a bad value, or a value that names what is not there.
type Problem struct {
	// Field is the annotation's whole name, or the key.
	Field   string
	Code    finding.Code
	Message string
	Effect  string
}

// NewReader reads the annotations of one Ingress over the values of config. One
// Reader may serve many routes of it. With nil annotations it reads only config.
func NewReader(prefix string, annotations map[string]string, config *Config) *Reader {
	return &Reader{prefix: prefix + "/", annotations: annotations, config: config}
}

// Of says whose annotations they are, and shows the objects that they refer to.
func (r *Reader) Of(ingress model.Origin, objects Objects) *Reader {
	r.origin, r.objects = ingress, objects
	return r
}

// A Host is the host whose routes annotations are read for.
type Host struct {
	Name string
	// ManyNames is set where clients ask for it by more than one name.
	ManyNames bool
	// Answers tells whether the host has a route for a path that does not ask
	// the host itself before it lets a request pass.
	Answers func(path string) bool
}

// On says for which host they are read.
func (r *Reader) On(h Host) *Reader {
	r.host = h
	return r
}

// Deciding says that the annotations count for all paths of the host: there a
// bad value denies.
func (r *Reader) Deciding() *Reader {
	r.denial = "all paths of host " + r.host.Name + " are refused"
	return r
}

// Host is the host, its zero value where the annotations are read for no single
// one.
func (r *Reader) Host() Host { return r.host }

// Origin names the Ingress, its zero value where only the ConfigMap is read.
func (r *Reader) Origin() model.Origin { return r.origin }

// Problems are the bad values that were met, each once.
func (r *Reader) Problems() []Problem { return r.problems }

// Denied tells whether a bad value denies the routes.
func (r *Reader) Denied() bool { return r.denied }

// Forbidden tells whether Police found what the administrator does not allow.
func (r *Reader) Forbidden() bool { return r.forbidden }

// Refuse notes that an annotation, or a key that counts, can't be followed for a
// reason that its text alone does not have. What that does is what a bad value
// does.
func (r *Reader) Refuse(setting Declared, code finding.Code, message string) {
	d := setting.Declaration()
	r.note(r.field(d), code, message, d.OnInvalid)
}

// Deny notes the same, and denies the routes whatever a bad value does.
func (r *Reader) Deny(setting Declared, code finding.Code, message string) {
	r.note(r.field(setting.Declaration()), code, message, Deny)
}

// Tell notes that an annotation, or a key that counts, does not do what it asks
// for, and what happens instead.
func (r *Reader) Tell(setting Declared, code finding.Code, message, effect string) {
	r.tell(Problem{Field: r.field(setting.Declaration()), Code: code, Message: message, Effect: effect})
}

// field is what is written where a setting is made: an annotation's whole name,
// or a key.
func (r *Reader) field(d Declaration) string {
	if d.Annotation == "" {
		return d.Key
	}
	return r.prefix + d.Annotation
}

func (r *Reader) annotation(name string) (string, bool) {
	if r.annotations == nil {
		return "", false
	}
	text, ok := r.annotations[r.prefix+name]
	return text, ok
}

// remember keeps the value of an annotation for whoever asks next. An annotation
// is declared by one Setting only.
func (r *Reader) remember(name string, value any) {
	if r.values == nil {
		r.values = map[string]any{}
	}
	r.values[name] = value
}

// denialEffect is what a bad value does that denies.
func (r *Reader) denialEffect() string {
	return cmp.Or(r.denial, "the paths of this Ingress answer 503")
}

func (r *Reader) note(field string, code finding.Code, message string, on OnInvalid) {
	effect := "the default is used"
	if on == Deny {
		r.denied = true
		effect = r.denialEffect()
	}
	r.tell(Problem{Field: field, Code: code, Message: message, Effect: effect})
}

// tell takes a problem down once: features are asked for each route.
func (r *Reader) tell(p Problem) {
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

// What a Problem quotes, in bytes: the text is a tenant's, and so may be what
// its parser says of it.
const (
	mostValue = 80
	mostError = 300
)

// NotImplemented is the error of a Parse for a value that may be right but that
// nothing obeys yet. It says what is not implemented.
type NotImplemented string

func (n NotImplemented) Error() string { return string(n) }

// badCode is the code of a finding about a value that Parse does not take, and
// its message.
func badCode(text string, err error) (finding.Code, string) {
	if missing, ok := errors.AsType[NotImplemented](err); ok {
		return finding.NotImplemented, missing.Error()
	}
	return finding.InvalidValue, badValue(text, err)
}

func badValue(text string, err error) string {
	return fmt.Sprintf("%q is no valid value: %s", cut(text, mostValue), cutList(strings.ToValidUTF8(err.Error(), "�"), mostError))
}

// Shorten keeps what tenants wrote to a length that a finding can carry.
func Shorten(text string) string { return cut(text, mostValue) }

// cut shortens a text, and leaves no broken character at its end.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// ShortenList joins the elements of a list, to a length that a finding can carry.
func ShortenList(list []string) string { return cutList(strings.Join(list, ", "), mostValue) }

// cutList shortens a text with a list in it behind one of the elements, and says
// how many follow. What has no element that is short enough is cut as any text.
func cutList(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const comma = ", "
	end := strings.LastIndex(text[:most], comma)
	if end <= 0 {
		return cut(text, most)
	}
	return fmt.Sprintf("%s and %d more", text[:end], strings.Count(text[end:], comma))
}

// A Config is the parsed content of the ConfigMap.
type Config struct {
	values map[string]any
	// denies are the keys with a bad value that denies.
	denies map[string]bool
	// lacks is what NGINX can't do.
	lacks [capabilities]bool
}

// NewConfig parses a ConfigMap's data. A bad value is left out and told.
func NewConfig(features []Feature, data map[string]string) (*Config, []Problem) {
	declared := map[string]Declared{}
	for _, s := range Declarations(features) {
		if key := s.Declaration().Key; key != "" {
			declared[key] = s
		}
	}
	config := &Config{values: map[string]any{}, denies: map[string]bool{}}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(data)) {
		setting, ok := declared[key]
		if !ok {
			problems = append(problems, Problem{
				Field: key, Code: finding.UnknownKey, Message: "this key is not known", Effect: "it does nothing",
			})
			continue
		}
		text := strings.TrimSpace(data[key])
		value, err := setting.Check(text)
		if err != nil {
			effect := "the default is used"
			if setting.Declaration().OnInvalid == Deny {
				config.denies[key] = true
				effect = "the paths that it counts for answer 503"
			}
			code, message := badCode(text, err)
			problems = append(problems, Problem{Field: key, Code: code, Message: message, Effect: effect})
			continue
		}
		config.values[key] = value
	}
	return config, problems
}

// Declarations are the settings of all features, and those by which an
// administrator says what tenants may do.
func Declarations(features []Feature) []Declared {
	list := Tenancy()
	for _, f := range features {
		list = append(list, f.Settings...)
	}
	return list
}
