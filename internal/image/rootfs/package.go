package rootfs

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"strings"

	"pault.ag/go/debian/deb"

	"github.com/headgate/headgate/internal/image/debian"
)

// AddPackage adds the files of a package that an image needs, and a file about it where
// scanners look for it.
func (t *Tree) AddPackage(file string) (deb.Control, error) {
	control, err := debian.Unpack(file, func(e debian.Entry) error {
		name := strings.Trim(path.Clean(e.Header.Name), "/.")
		if name == "" || isUnneeded(name) {
			return nil
		}
		f := File{Kind: e.Header.Typeflag, Mode: e.Header.Mode & 0o777, User: e.Header.Uid, Group: e.Header.Gid, Target: e.Header.Linkname}
		switch f.Kind {
		case tar.TypeReg:
			var err error
			if f.Content, err = io.ReadAll(e.Content); err != nil {
				return err
			}
		case tar.TypeLink:
			of, err := t.Open("/" + path.Clean(e.Header.Linkname))
			if err != nil {
				return err
			}
			f = of
		case tar.TypeDir, tar.TypeSymlink:
		default:
			return fmt.Errorf("%s has the unexpected type %q", name, f.Kind)
		}
		return t.Add(name, f)
	})
	if err != nil {
		return control, err
	}
	about, err := paragraph(control)
	if err != nil {
		return control, err
	}
	return control, t.Add("var/lib/dpkg/status.d/"+control.Package, File{Kind: tar.TypeReg, Mode: 0o644, Content: about})
}

// paragraph is the control file of a package.
func paragraph(control deb.Control) ([]byte, error) {
	var text strings.Builder
	if err := control.WriteTo(&text); err != nil {
		return nil, fmt.Errorf("write about %s: %w", control.Package, err)
	}
	return []byte(text.String()), nil
}

// isUnneeded reports whether a file has no use in a container: documentation except
// licences, and files for programs that are not there.
func isUnneeded(name string) bool {
	if rest, ok := strings.CutPrefix(name, "usr/share/doc/"); ok {
		return strings.Contains(rest, "/") && path.Base(name) != "copyright"
	}
	for _, dir := range []string{
		"etc/cron.d", "etc/cron.daily", "etc/default", "etc/init", "etc/init.d", "etc/kernel", "etc/logrotate.d", "etc/ufw", "etc/update-motd.d",
		"etc/nginx/conf.d", "etc/nginx/modules-available", "etc/nginx/modules-enabled", "etc/nginx/sites-available", "etc/nginx/sites-enabled",
		"etc/nginx/snippets", "etc/nginx/nginx.conf", "usr/lib/systemd", "usr/lib/tmpfiles.d", "usr/lib/sysctl.d", "usr/share/bash-completion",
		"usr/share/bug", "usr/share/debconf", "usr/share/info", "usr/share/initramfs-tools", "usr/share/lintian", "usr/share/locale", "usr/share/man",
		"usr/share/menu", "usr/share/pixmaps", "usr/share/gdb", "usr/share/gcc", "usr/share/doc-base",
		"etc/profile.d", "etc/skel", "usr/share/apport", "usr/share/base-files", "usr/share/dict", "usr/share/misc", "usr/share/modsecurity-crs/util",
		"usr/share/nginx/docs", "usr/share/nginx/html", "usr/share/nginx/modules-available", "usr/share/vim", "var/cache", "var/backups", "var/www",
	} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return strings.Contains(name, "/ngx_stream_") || strings.HasSuffix(name, ".a")
}
