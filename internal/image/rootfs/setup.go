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
	for from, to := range moved() {
		if err := t.Move(from, to); err != nil {
			return err
		}
	}
	files := expected(triplet)
	files["etc/ssl/certs/ca-certificates.crt"] = File{Kind: tar.TypeReg, Mode: 0o644, Content: authorities}
	for name, f := range files {
		if err := t.Put(name, f); err != nil {
			return err
		}
	}
	for _, name := range []string{"/usr/local/lib/libmimalloc.so", "/" + DumbInit, "/usr/bin/nginx", "/bin/busybox", "/etc/nginx/owasp-modsecurity-crs/crs-setup.conf"} {
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

// Put is Add, and replaces a file or the owner of a directory.
func (t *Tree) Put(name string, f File) error {
	at, err := t.follow(path.Dir("/" + name))
	if err != nil {
		return fmt.Errorf("put /%s: %w", name, err)
	}
	t.files[strings.TrimPrefix(path.Join(at, path.Base(name)), "/")] = f
	return nil
}

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
