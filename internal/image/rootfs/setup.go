package rootfs

import (
	"archive/tar"
	"fmt"
	"path"
	"strings"
)

// The user and group that everything in the image runs as: those of ingress-nginx's.
const (
	User  = 101
	Group = 82
)

// Triplet is the name of the folder with an architecture's libraries.
func Triplet(architecture string) (string, error) {
	switch architecture {
	case "amd64":
		return "x86_64-linux-gnu", nil
	case "arm64":
		return "aarch64-linux-gnu", nil
	}
	return "", fmt.Errorf("unknown architecture %q: must be amd64 or arm64", architecture)
}

// SetUp does what the scripts of the packages would, and adds what programs expect.
func (t *Tree) SetUp(architecture string) error {
	triplet, err := Triplet(architecture)
	if err != nil {
		return err
	}
	authorities, err := t.authorities()
	if err != nil {
		return err
	}
	files := map[string]File{
		"etc/passwd":                        text(passwd),
		"etc/group":                         text(group),
		"etc/nsswitch.conf":                 text("passwd: files\ngroup: files\nhosts: files dns\n"),
		"etc/ssl/certs/ca-certificates.crt": {Kind: tar.TypeReg, Mode: 0o644, Content: authorities},
		"usr/lib/ssl/cert.pem":              link("/etc/ssl/certs/ca-certificates.crt"),
		"usr/lib/ssl/certs":                 link("/etc/ssl/certs"),
		"usr/local/lib/libmimalloc.so":      link("/usr/lib/" + triplet + "/libmimalloc.so.3"),
		"etc/nginx/nginx.conf":              link("/run/headgate-80-443/nginx.conf"),
		"etc/nginx/owasp-modsecurity-crs":   link("/usr/share/modsecurity-crs"),
		"etc/nginx/template":                dir(0o755, 0, 0),
		"etc/nginx/geoip":                   link("/etc/ingress-controller/geoip"),
		"etc/localtime":                     link("/usr/share/zoneinfo/Etc/UTC"),
		"etc/ingress-controller":            dir(0o755, User, Group),
		"etc/ingress-controller/ssl":        dir(0o755, User, Group),
		"etc/ingress-controller/auth":       dir(0o755, User, Group),
		"etc/ingress-controller/geoip":      dir(0o755, User, Group),
		"etc/ingress-controller/telemetry":  dir(0o755, User, Group),
		"run":                               dir(0o755, User, Group),
		"tmp":                               dir(0o777|sticky, 0, 0),
		"tmp/nginx":                         dir(0o755, User, Group),
		"var/log/nginx":                     dir(0o755, User, Group),
		"var/log/nginx/access.log":          link("/dev/stdout"),
		"var/log/nginx/error.log":           link("/dev/stderr"),
		"var/lib/nginx":                     dir(0o755, User, Group),
		"proc":                              dir(0o755, 0, 0),
		"sys":                               dir(0o755, 0, 0),
		"dev":                               dir(0o755, 0, 0),
		"root":                              dir(0o700, 0, 0),
		"home":                              dir(0o755, 0, 0),
		"usr/local/certificates":            dir(0o755, 0, 0),
		"usr/local/nginx/sbin/nginx":        link("/usr/sbin/nginx"),
		"usr/bin/nginx":                     link("/usr/sbin/nginx"),
	}
	for name, f := range files {
		if err := t.Put(name, f); err != nil {
			return err
		}
	}
	for _, name := range []string{"/usr/local/lib/libmimalloc.so", "/usr/bin/dumb-init", "/usr/bin/nginx", "/bin/busybox"} {
		if _, err := t.Open(name); err != nil {
			return err
		}
	}
	for _, applet := range strings.Fields(applets) {
		if _, err := t.Open("/usr/bin/" + applet); err == nil {
			continue
		}
		if err := t.Add("usr/bin/"+applet, link("busybox")); err != nil {
			return err
		}
	}
	return nil
}

const sticky = 0o1000

func text(content string) File { return File{Kind: tar.TypeReg, Mode: 0o644, Content: []byte(content)} }

func link(target string) File { return File{Kind: tar.TypeSymlink, Mode: 0o777, Target: target} }

func dir(mode int64, user, group int) File {
	return File{Kind: tar.TypeDir, Mode: mode, User: user, Group: group}
}

// Put is Add, and replaces a file or the owner of a directory.
func (t *Tree) Put(name string, f File) error {
	at, err := t.follow(path.Dir("/" + name))
	if err != nil {
		return fmt.Errorf("put /%s: %w", name, err)
	}
	t.files[strings.TrimPrefix(path.Join(at, path.Base(name)), "/")] = f
	return nil
}

// passwd and group name the owners of files, the user of everything, that of workers of an
// NGINX that is started as root, and that of jobs that make certificates.
const (
	passwd = `root:x:0:0:root:/root:/bin/sh
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
headgate:x:101:82:headgate:/tmp:/bin/sh
nonroot:x:65532:65532:nonroot:/tmp:/usr/sbin/nologin
`
	group = `root:x:0:
www-data:x:33:
headgate:x:82:
nonroot:x:65532:
`
)

// applets are the commands of busybox that people use in a container.
const applets = `ash awk base64 basename cat chmod chown clear cp cut date dd df diff dirname du echo env expr false find free grep gunzip gzip head
hostname id ip kill killall less ln ls md5sum mkdir mktemp more mv nc netstat nslookup od pgrep pidof ping pkill printf ps pwd readlink realpath rm
rmdir sed seq sh sha256sum sleep sort stat strings sync tail tar tee test timeout top touch tr traceroute true uname uniq uptime vi watch wc wget
which whoami xargs xxd yes zcat`

// authorities is the file with all of the certificates of ca-certificates, as its script
// makes it.
func (t *Tree) authorities() ([]byte, error) {
	var all []byte
	for _, name := range t.Paths() {
		if strings.HasPrefix(name, "usr/share/ca-certificates/") && strings.HasSuffix(name, ".crt") {
			all = append(all, strings.TrimSpace(string(t.files[name].Content))+"\n"...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no certificate authorities below /usr/share/ca-certificates")
	}
	return all, nil
}
