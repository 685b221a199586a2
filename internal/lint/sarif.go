package lint

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

// The types are the part of SARIF 2.1.0 that code hosts read:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		ShortDescription     sarifText          `json:"shortDescription"`
		FullDescription      sarifText          `json:"fullDescription"`
		Help                 sarifText          `json:"help"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Level               string            `json:"level"`
		Message             sarifText         `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	homepage    = "https://github.com/headgate/headgate"
	// fingerprintName differs from the one that GitHub's action computes from the
	// text around a line: GitHub warns about other values under that name.
	fingerprintName = "headgateFinding/v1"
)

func writeSARIF(w io.Writer, r Report) error {
	all := rules()
	driver := sarifDriver{Name: "headgate lint", Version: r.version, InformationURI: homepage}
	for _, rule := range all {
		driver.Rules = append(driver.Rules, sarifRule{
			ID: string(rule.code), ShortDescription: sarifText{rule.short}, FullDescription: sarifText{rule.short + "."},
			Help: sarifText{rule.help}, DefaultConfiguration: sarifConfiguration{level(rule.severity)},
		})
	}
	results := make([]sarifResult, len(r.Results))
	for i, one := range r.Results {
		results[i] = sarifResult{
			RuleID:    string(one.Code),
			RuleIndex: slices.IndexFunc(all, func(rule rule) bool { return rule.code == one.Code }),
			Level:     level(one.Severity),
			Message:   sarifText{one.text()},
			// Code hosts don't show results without a line.
			Locations: []sarifLocation{{sarifPhysical{
				ArtifactLocation: sarifArtifact{uri(one.Path)}, Region: sarifRegion{max(one.Line, 1)},
			}}},
			PartialFingerprints: map[string]string{fingerprintName: one.fingerprint()},
		}
	}
	return encode(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{{sarifTool{driver}, results}}})
}

func level(s Severity) string {
	if s == Error {
		return "error"
	}
	return "note"
}

// uri converts a path to a URI, which is relative if the path is.
func uri(p string) string {
	u := url.URL{Path: p}
	if path.IsAbs(p) {
		u.Scheme = "file"
	}
	return u.String()
}

// lines matches the locations in messages about files.
var lines = regexp.MustCompile(`(:|line )[0-9]+`)

// fingerprint stays the same while the object and the problem do, even if their
// location changes.
func (r Result) fingerprint() string {
	message := r.Message
	if r.Code == finding.BadManifest {
		message = lines.ReplaceAllString(message, "")
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(r.Code), r.Object, r.Field, r.Referrer, message}, "\x00")))
	return hex.EncodeToString(sum[:16])
}
