package image

import (
	"encoding/json"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"pault.ag/go/debian/deb"
)

// none is SPDX's word for what is not known.
const none = "NOASSERTION"

// SBOM lists the packages and Go modules of an image as SPDX 2.3 in JSON. build is that of
// Headgate.
func SBOM(in Input, packages []deb.Control, build *debug.BuildInfo) ([]byte, error) {
	const root = "Package-headgate"
	doc := spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      "headgate " + in.Version + " " + in.Lock.Architecture,
		DocumentNamespace: in.Source + "/sbom/" + in.Version + "/" + in.Lock.Architecture,
		CreationInfo: &spdx.CreationInfo{
			Created:  in.Lock.At.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "headgate-image"}},
		},
	}
	add := func(id, name, version, url string) {
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageSPDXIdentifier: common.ElementID(id), PackageName: name, PackageVersion: version,
			PackageDownloadLocation: none, PackageLicenseConcluded: none, PackageLicenseDeclared: none, PackageCopyrightText: none,
			PackageExternalReferences: []*spdx.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: url}},
		})
	}
	relate := func(a, kind, b string) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", a), RefB: common.MakeDocElementID("", b), Relationship: kind,
		})
	}
	add(root, "headgate", in.Version, "pkg:golang/"+build.Main.Path+"@"+in.Version)
	relate("DOCUMENT", "DESCRIBES", root)
	for _, p := range packages {
		id, version := "Package-deb-"+identifier(p.Package), p.Version.String()
		add(id, p.Package, version, "pkg:deb/debian/"+p.Package+"@"+version+"?arch="+in.Lock.Architecture+"&distro=debian-13")
		relate(root, "DEPENDS_ON", id)
	}
	add("Package-go-std", "std", build.GoVersion, "pkg:golang/std@"+build.GoVersion)
	relate(root, "DEPENDS_ON", "Package-go-std")
	for _, m := range build.Deps {
		id := "Package-go-" + identifier(m.Path)
		add(id, m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
		relate(root, "DEPENDS_ON", id)
	}
	return json.MarshalIndent(doc, "", "  ")
}

// identifier has the characters only that SPDX allows in identifiers.
func identifier(name string) string {
	return regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(name, "-")
}
