package build

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

type parsedConfig struct {
	config   *feature.Config
	problems []feature.Problem
}

// settings are the parsed ConfigMap; without one all defaults hold.
func (b *Builder) settings(v View) parsedConfig {
	return b.config.get(v.ConfigMap(), func(object *corev1.ConfigMap) parsedConfig {
		var data map[string]string
		if object != nil {
			data = object.Data
		}
		config, problems := b.newConfig(data)
		return parsedConfig{config, problems}
	})
}

// Globals builds what holds for every request. Only here are the ConfigMap's
// bad and unknown keys found, and those that can't be followed.
func (b *Builder) Globals(v View) (model.Globals, []finding.Finding) {
	settings := b.settings(v)
	var g model.Globals
	reader := feature.NewReader(b.prefix, nil, settings.config)
	for _, f := range b.features {
		if f.Global != nil {
			if value := f.Global(reader); value != nil {
				g.Policies = append(g.Policies, model.Policy{Feature: f.Name, Value: value})
			}
		}
		if f.Process != nil {
			f.Process(reader, &g.Process)
		}
	}
	var plain model.Route
	b.applyFeatures(&plain, feature.NewReader(b.prefix, nil, settings.config))
	g.Default = plain.Profile

	var fs []finding.Finding
	if object := v.ConfigMap(); object != nil {
		fs = problemFindings("configmap/"+object.Namespace+"/"+object.Name, slices.Concat(settings.problems, reader.Problems()))
	}
	return g, finding.Sort(fs)
}

// applyFeatures lets every feature write what the annotations mean into the
// route. Whether a bad value denies it is known by the reader.
func (b *Builder) applyFeatures(route *model.Route, reader *feature.Reader) {
	for _, f := range b.features {
		if f.Route != nil {
			f.Route(reader, route)
		}
	}
}
