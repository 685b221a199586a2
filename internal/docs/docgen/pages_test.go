// Package docgen writes the reference of all annotations and ConfigMap keys
// from the declarations of features, and docs/coverage.md: what becomes of each name
// of ingress-nginx. Its test compares the pages with what is declared.
package docgen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/ingressnginx"
)

const generated = "\n<!-- Written by `go test ./internal/docs/docgen -update` from what the features declare. -->\n"

const annotationsHead = `
Annotations are listed without their prefix, which is ` + "`nginx.ingress.kubernetes.io/`" + ` unless ` + "`--annotations-prefix`" + ` sets
another one. As in ingress-nginx, white space around a value is ignored, but white space around true or false makes the value
invalid. ` + "`ssl-prefer-server-ciphers`" + ` accepts this white space too.

* **Default** is the value without the annotation and without the ConfigMap key of the column **Key**
  ([configmap.md](configmap.md)). A dash means that there is none.
* **Risk** is the risk of the annotation. If it is higher than the key ` + "`annotations-risk-level`" + ` allows, the paths of the
  Ingress answer 503.
* **Invalid value** is the effect of a value that is rejected. *default*: the annotation is ignored. *503*: all paths of the
  Ingress answer 503, or another status that the column **Effect** names. There is a finding in both cases.

An annotation with the prefix that is not on this page has no effect, and a finding reports it.
`

const snippets = `
### Snippets

What ` + "`auth-snippet`, `configuration-snippet`, `modsecurity-snippet` and `server-snippet`" + ` do is decided in this order:

1. Their risk is Critical. While the key ` + "`annotations-risk-level`" + ` is lower (its default is High), the paths of the Ingress answer 503, with the
   finding ` + "`NotAllowed`" + `.
2. While the key ` + "`allow-snippet-annotations`" + ` is false (its default), the snippet has no effect. With ` + "`modsecurity-snippet`" + ` and
   ` + "`enable-modsecurity`" + `, the paths of the Ingress answer 503.
3. ` + "`modsecurity-snippet`" + ` applies if ` + "`enable-modsecurity`" + ` does and it has only what [modsecurity.md](modsecurity.md) lists. With anything
   else, the paths of the Ingress answer 503.
4. The other snippets do what [snippets.md](snippets.md) lists. If a directive that may control access is not on that page, the paths of the
   Ingress answer 503. Others that are not have no effect.

A finding reports each snippet that has no effect, or closes paths.
`

// Annotations is docs/annotations.md.
func Annotations(features []feature.Feature, refused []ingressnginx.Refusal) string {
	var b strings.Builder
	b.WriteString("# Annotations\n" + generated + annotationsHead)
	keys := keysOf(features)
	for _, s := range append(sections(features), tenancy()) {
		rows := s.rows(func(d feature.SettingSpec) string { return d.Annotation })
		if len(rows) == 0 {
			continue
		}
		s.head(&b)
		table(&b, "Annotation", "Values", "Default", "Key", "Risk", "Invalid value", "Effect")
		for _, r := range rows {
			d := r.Spec()
			key := d.Key
			if key == "" && keys[d.Annotation] {
				key = d.Annotation
			}
			row(&b, code(d.Annotation), takes(r), defaultText(r), code(key), d.Risk.String(), badValue(d.OnInvalid), strings.TrimSpace(d.Doc+" "+appliesTo(d)))
		}
	}
	b.WriteString(snippets)
	refusals(&b, refused)
	return b.String()
}

const keysHead = `
This page lists the keys of the ConfigMap that ` + "`--configmap`" + ` names. Headgate applies its changes without a restart. **Default** is the value
without the key; a dash means that there is none. The default also replaces an invalid value, except for keys that control
access, such as ` + "`global-auth-url`" + `: the paths that they apply to answer 503. There is a finding in both cases. **Annotation** is the
annotation that overrides the key for one Ingress ([annotations.md](annotations.md)).

A key that is not on this page has no effect, and a finding reports it.
`

// Keys is docs/configmap.md.
func Keys(features []feature.Feature, refused []ingressnginx.Refusal) string {
	var b strings.Builder
	b.WriteString("# ConfigMap keys\n" + generated + keysHead)
	annotations := annotationsOf(features)
	for _, s := range append(sections(features), tenancy()) {
		rows := s.rows(func(d feature.SettingSpec) string { return d.Key })
		if len(rows) == 0 {
			continue
		}
		s.head(&b)
		table(&b, "Key", "Values", "Default", "Annotation", "Effect")
		for _, r := range rows {
			d := r.Spec()
			annotation := d.Annotation
			if annotation == "" && annotations[d.Key] {
				annotation = d.Key
			}
			row(&b, code(d.Key), takes(r), defaultText(r), code(annotation), d.Doc)
		}
	}
	b.WriteString("\n")
	refusals(&b, refused)
	return b.String()
}

// A section is the settings of one feature.
type section struct {
	name, doc string
	settings  []feature.AnySetting
}

func sections(features []feature.Feature) []section {
	var list []section
	for _, f := range features {
		s := section{name: f.Name, doc: f.Doc, settings: f.Settings}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b section) int { return cmp.Compare(a.name, b.name) })
	return list
}

func tenancy() section {
	return section{name: "tenancy", doc: "Limits on what tenants can do.", settings: feature.Tenancy()}
}

// rows are the settings that have a name of the kind, sorted by it.
func (s section) rows(name func(feature.SettingSpec) string) []feature.AnySetting {
	var rows []feature.AnySetting
	for _, d := range s.settings {
		if name(d.Spec()) != "" {
			rows = append(rows, d)
		}
	}
	slices.SortFunc(rows, func(a, b feature.AnySetting) int {
		return cmp.Compare(name(a.Spec()), name(b.Spec()))
	})
	return rows
}

func (s section) head(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", s.name, s.doc)
}

// table begins a table, and row adds to it.
func table(b *strings.Builder, columns ...string) {
	row(b, columns...)
	fmt.Fprintf(b, "|%s\n", strings.Repeat(" --- |", len(columns)))
}

func row(b *strings.Builder, cells ...string) {
	for i, c := range cells {
		cells[i] = cmp.Or(strings.Join(strings.Fields(strings.ReplaceAll(c, "|", `\|`)), " "), "–")
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func refusals(b *strings.Builder, refused []ingressnginx.Refusal) {
	b.WriteString("## Never supported\n\n")
	for _, r := range refused {
		fmt.Fprintf(b, "* %s: %s.\n", codes(r.Names), r.Reason)
	}
}

func codes(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = code(name)
	}
	return strings.Join(list, ", ")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func defaultText(s feature.AnySetting) string {
	text, _ := defaultOf(s)
	return code(text)
}

func badValue(on feature.OnInvalid) string {
	return map[feature.OnInvalid]string{feature.UseDefault: "default", feature.Deny: "503", feature.DenyMissing: "default; 503 if the ConfigMap is missing or invalid"}[on]
}

// appliesTo says which Ingress decides, where a setting applies to more than the
// paths of its own.
func appliesTo(d feature.SettingSpec) string {
	unit := map[feature.Scope]string{feature.ScopeHost: "a whole host", feature.ScopeBackend: "all requests to a port of a Service"}[d.Scope]
	switch {
	case unit == "":
		return ""
	case d.Merge == feature.MergeTogether:
		return "Applies to " + unit + ", together with the others of this section. If several Ingresses set them, the oldest one decides."
	case d.Merge == feature.MergeOwner:
		return "Applies to " + unit + ". If several Ingresses use it, the oldest one decides."
	}
	return "Applies to " + unit + ". If several Ingresses set it, the oldest one with a valid value decides."
}

// keysOf and annotationsOf are the names that some setting has.
func keysOf(features []feature.Feature) map[string]bool {
	return names(feature.AllSettings(features), func(d feature.SettingSpec) string { return d.Key })
}

func annotationsOf(features []feature.Feature) map[string]bool {
	return names(feature.AllSettings(features), func(d feature.SettingSpec) string { return d.Annotation })
}

func names(settings []feature.AnySetting, of func(feature.SettingSpec) string) map[string]bool {
	set := map[string]bool{}
	for _, s := range settings {
		if name := of(s.Spec()); name != "" {
			set[name] = true
		}
	}
	return set
}
