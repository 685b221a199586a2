package selection

import (
	"fmt"
	"path/filepath"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/source/file"
)

// A manifest is the path of a file or folder, as the owner of findings.
type manifest string

// ManifestFindings are the problems of files and folders, with their paths relative
// to the folder of all.
func ManifestFindings(all string, problems map[string][]file.Problem) []tracker.Part {
	parts := make([]tracker.Part, 0, len(problems))
	for path, ps := range problems {
		part := tracker.Part{Owner: manifest(path)}
		for _, p := range ps {
			part.Findings = append(part.Findings, manifestFinding(inside(all, path), p))
		}
		parts = append(parts, part)
	}
	return parts
}

// inside is a path as in findings: relative to the folder of all.
func inside(all, path string) string {
	if inside, err := filepath.Rel(all, path); err == nil {
		return inside
	}
	return path
}

// Holders returns the files that contain an object, and the folders above them, as
// in findings.
func Holders(all string, files func(object string) []string) func(object string) []string {
	return func(object string) []string {
		var names []string
		for _, path := range files(object) {
			for at := inside(all, path); ; at = filepath.Dir(at) {
				names = append(names, "file/"+at)
				if at == filepath.Dir(at) {
					break
				}
			}
		}
		return names
	}
}

func manifestFinding(path string, p file.Problem) finding.Finding {
	if p.Object != "" {
		// Without the line, so that the finding stays the same when the object moves.
		return finding.Finding{
			Object: p.Object, Field: p.Field, Code: finding.OldVersion, Message: path + ": " + p.Reason, Effect: p.Effect,
		}
	}
	f := finding.Finding{Object: "file/" + path, Code: finding.BadManifest, Message: p.Reason, Effect: p.Effect}
	if p.Line > 0 {
		f.Field = fmt.Sprintf("line %d", p.Line)
	}
	return f
}
