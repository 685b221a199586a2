package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// A manifest is that of a plugin of krew, with the fields that are used here.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats,omitempty"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

// A platform is an archive and the machines that it is for.
type platform struct {
	Selector struct {
		MatchLabels struct {
			OS   string `json:"os"`
			Arch string `json:"arch"`
		} `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

func (p platform) String() string {
	return p.Selector.MatchLabels.OS + "/" + p.Selector.MatchLabels.Arch
}

// fill reads the template and replaces what depends on the release, but the sums.
func fill(text []byte, version, base string) (*manifest, error) {
	var m manifest
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", template, err)
	}
	if !versionForm.MatchString(version) {
		return nil, fmt.Errorf("invalid value %q of -version: must be such as v1.2.3", version)
	}
	m.Spec.Version = version
	for i := range m.Spec.Platforms {
		p := &m.Spec.Platforms[i]
		p.URI = strings.Replace(p.URI, "BASE", strings.TrimSuffix(base, "/"), 1)
	}
	return &m, nil
}

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)
	sumForm     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// maxShort is what krew's index asks of short descriptions.
const maxShort = 50

// check returns what krew and its index would reject.
func (m *manifest) check() error {
	var errs []error
	rule := func(holds bool, text string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(text, args...))
		}
	}
	rule(m.APIVersion == "krew.googlecontainertools.github.com/v1alpha2", "invalid apiVersion %q", m.APIVersion)
	rule(m.Kind == "Plugin", "invalid kind %q", m.Kind)
	rule(nameForm.MatchString(m.Metadata.Name), "invalid name %q", m.Metadata.Name)
	rule(versionForm.MatchString(m.Spec.Version), "invalid version %q", m.Spec.Version)
	short := m.Spec.ShortDescription
	rule(short != "" && len(short) <= maxShort && !strings.ContainsAny(short, "\r\n"), "the short description must be a line of at most %d characters", maxShort)
	rule(!strings.HasSuffix(short, "."), "the short description must not end with a period")
	rule(m.Spec.Description != "", "the description is missing")
	rule(len(m.Spec.Platforms) > 0, "there are no platforms")
	seen := map[string]bool{}
	for _, p := range m.Spec.Platforms {
		rule(!seen[p.String()], "there are two archives for %s", p)
		seen[p.String()] = true
		at, err := url.Parse(p.URI)
		rule(err == nil && at.Scheme == "https" && at.Host != "", "%s: invalid uri %q", p, p.URI)
		rule(strings.HasSuffix(p.URI, ".tar.gz") || strings.HasSuffix(p.URI, ".zip"), "%s: krew does not read %q", p, p.URI)
		rule(sumForm.MatchString(p.SHA256), "%s: invalid sha256 %q", p, p.SHA256)
		rule(filepath.IsLocal(p.Bin), "%s: invalid bin %q", p, p.Bin)
		rule(strings.HasSuffix(p.Bin, ".exe") == (p.Selector.MatchLabels.OS == "windows"), "%s: invalid suffix of bin %q", p, p.Bin)
	}
	return errors.Join(errs...)
}

func (m *manifest) write(file string) error {
	text, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
