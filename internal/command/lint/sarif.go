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

	"github.com/headgate/headgate/internal/command/plaintext"
	"github.com/headgate/headgate/internal/finding"
)

// An object is one of SARIF 2.1.0, with the part that code hosts read:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
type object = map[string]any

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	homepage    = "https://github.com/headgate/headgate"
	// fingerprintName differs from the one that GitHub's action computes from the
	// text around a line: GitHub warns about other values under that name.
	fingerprintName = "headgateFinding/v1"
)

func writeSARIF(w io.Writer, r Report) error {
	all := rules()
	described := make([]object, len(all))
	for i, rule := range all {
		described[i] = object{
			"id": rule.code, "shortDescription": object{"text": rule.short}, "fullDescription": object{"text": rule.short + "."},
			"help": object{"text": rule.help}, "defaultConfiguration": object{"level": level(ofCode(rule.code))},
		}
	}
	results := make([]object, len(r.Results))
	for i, one := range r.Results {
		results[i] = object{
			"ruleId":    one.Code,
			"ruleIndex": slices.IndexFunc(all, func(rule rule) bool { return rule.code == one.Code }),
			"level":     level(one.Severity),
			"message":   object{"text": one.text()},
			// Code hosts don't show results without a line.
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": uri(one.Path)}, "region": object{"startLine": max(one.Line, 1)},
			}}},
			"partialFingerprints": object{fingerprintName: one.fingerprint()},
		}
	}
	driver := object{"name": "headgate lint", "version": r.version, "informationUri": homepage, "rules": described}
	return plaintext.WriteJSON(w, object{
		"$schema": sarifSchema, "version": "2.1.0", "runs": []object{{"tool": object{"driver": driver}, "results": results}},
	})
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
