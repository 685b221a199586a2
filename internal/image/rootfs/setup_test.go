package rootfs_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/image/rootfs"
)

// unpacked are files of packages that SetUp needs.
func unpacked(t *testing.T) *rootfs.Tree {
	t.Helper()
	tree := rootfs.New()
	for _, name := range []string{
		"usr/bin/dumb-init", "usr/bin/busybox", "usr/sbin/nginx", "usr/lib/aarch64-linux-gnu/libmimalloc.so.3", "etc/nginx/modsecurity.conf",
		"etc/nginx/unicode.mapping", "usr/share/ca-certificates/mozilla/one.crt", "usr/share/modsecurity-crs/rules/REQUEST-901-INITIALIZATION.conf",
		"etc/modsecurity/crs/crs-setup.conf", "etc/modsecurity/crs/REQUEST-900-EXCLUSION-RULES-BEFORE-CRS.conf",
		"etc/modsecurity/crs/RESPONSE-999-EXCLUSION-RULES-AFTER-CRS.conf",
	} {
		add(t, tree, name, file(name))
	}
	add(t, tree, "bin", link("usr/bin"))
	return tree
}

// TestSetUp: what ingress-nginx's chart and its users name is there, with its owner.
func TestSetUp(t *testing.T) {
	tree := unpacked(t)
	if err := tree.SetUp("arm64"); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"/etc/nginx/modsecurity/modsecurity.conf":                                "etc/nginx/modsecurity.conf",
		"/etc/nginx/modsecurity.conf":                                            "etc/nginx/modsecurity.conf",
		"/etc/nginx/owasp-modsecurity-crs/crs-setup.conf":                        "etc/modsecurity/crs/crs-setup.conf",
		"/etc/nginx/owasp-modsecurity-crs/rules/REQUEST-901-INITIALIZATION.conf": "usr/share/modsecurity-crs/rules/REQUEST-901-INITIALIZATION.conf",
		"/etc/ssl/certs/ca-certificates.crt":                                     "usr/share/ca-certificates/mozilla/one.crt\n",
		"/usr/local/lib/libmimalloc.so":                                          "usr/lib/aarch64-linux-gnu/libmimalloc.so.3",
		"/usr/lib/headgate/dumb-init":                                            "usr/bin/dumb-init",
		"/bin/sh":                                                                "usr/bin/busybox",
		"/chroot/usr/bin/nginx":                                                  "usr/sbin/nginx",
	} {
		if f, err := tree.Open(name); err != nil || string(f.Content) != content {
			t.Errorf("%s: %q, %v, want %q", name, f.Content, err, content)
		}
	}
	got := owners(t, tree)
	for name, want := range map[string]string{
		"etc/nginx/template/": "0:0 755", "etc/nginx/lua/plugins/": "0:0 755", "modules_mount/": "0:0 755", "usr/local/certificates/": "0:0 755",
		"etc/ingress-controller/": "101:82 755", "etc/ingress-controller/geoip/": "101:82 755", "etc/ingress-controller/ssl/": "101:82 755",
		"run/": "101:82 755", "var/log/audit/": "101:82 755", "tmp/": "0:0 1777",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
}

// owners are the owner and mode of each file of a layer.
func owners(t *testing.T, tree *rootfs.Tree) map[string]string {
	t.Helper()
	var out bytes.Buffer
	if err := tree.Tar(&out, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = fmt.Sprintf("%d:%d %o", h.Uid, h.Gid, h.Mode)
	}
}

// TestChecks: a link that leads nowhere, a missing licence, and more than an image may have, are found.
func TestChecks(t *testing.T) {
	base, program := unpacked(t), rootfs.New()
	if err := base.SetUp("arm64"); err != nil {
		t.Fatal(err)
	}
	if err := rootfs.CheckLinks(base); err == nil || !strings.Contains(err.Error(), "/usr/bin/dumb-init is a link to /usr/lib/headgate/start") {
		t.Errorf("without Headgate: %v", err)
	}
	add(t, program, rootfs.Start, file(""))
	add(t, base, "usr/share/zoneinfo/Etc/UTC", file(""))
	add(t, base, "usr/lib/nginx/modules", rootfs.File{Kind: tar.TypeDir, Mode: 0o755})
	if err := rootfs.CheckLinks(base, program); err != nil {
		t.Error(err)
	}
	add(t, base, "usr/share/doc/zlib1g/copyright", file(""))
	add(t, program, "usr/share/doc/headgate/LICENSE", file(""))
	if err := rootfs.CheckLicences([]string{"zlib1g", "headgate"}, base, program); err != nil {
		t.Error(err)
	}
	if err := rootfs.CheckLicences([]string{"zlib1g", "nginx"}, base, program); err == nil || !strings.Contains(err.Error(), "no licence of nginx") {
		t.Errorf("without the licence of nginx: %v", err)
	}
	if err := rootfs.CheckSize(base, program); err != nil {
		t.Error(err)
	}
	add(t, program, "large", rootfs.File{Kind: tar.TypeReg, Content: make([]byte, 200_000_001)})
	if err := rootfs.CheckSize(base, program); err == nil {
		t.Error("200 MB are not too large")
	}
}
