package rootfs

import "archive/tar"

// Paths of Headgate's programs in an image.
const (
	// Program is Headgate.
	Program = "usr/bin/headgate"
	// Start is cmd/headgate-start, which starts DumbInit and Program by the paths that
	// ingress-nginx's image has for them.
	Start    = "usr/lib/headgate/start"
	DumbInit = "usr/lib/headgate/dumb-init"
	// ConfLink is where Headgate makes a link to NGINX's configuration when it starts.
	ConfLink = "/run/nginx.conf"
)

// moved are files of packages that have another path in an image.
func moved() map[string]string {
	return map[string]string{
		"usr/bin/dumb-init":          DumbInit,
		"etc/nginx/modsecurity.conf": "etc/nginx/modsecurity/modsecurity.conf",
		"etc/nginx/unicode.mapping":  "etc/nginx/modsecurity/unicode.mapping",
	}
}

// expected are the files, directories and links that programs expect, and those that users of
// ingress-nginx's image mount something at, or name in snippets.
func expected(triplet string) map[string]File {
	files := map[string]File{
		"etc/passwd":                   text(passwd),
		"etc/group":                    text(group),
		"etc/nsswitch.conf":            text("passwd: files\ngroup: files\nhosts: files dns\n"),
		"etc/localtime":                link("/usr/share/zoneinfo/Etc/UTC"),
		"etc/ssl/cert.pem":             link("/etc/ssl/certs/ca-certificates.crt"),
		"usr/lib/ssl/cert.pem":         link("/etc/ssl/certs/ca-certificates.crt"),
		"usr/lib/ssl/certs":            link("/etc/ssl/certs"),
		"usr/bin/dumb-init":            link("/" + Start),
		"usr/bin/nginx":                link("/usr/sbin/nginx"),
		"usr/local/nginx/sbin/nginx":   link("/usr/sbin/nginx"),
		"usr/local/lib/libmimalloc.so": link("/usr/lib/" + triplet + "/libmimalloc.so.3"),
		"etc/nginx/nginx.conf":         link(ConfLink),
		"etc/nginx/modules":            link("/usr/lib/nginx/modules"),
		"etc/nginx/geoip":              link("/etc/ingress-controller/geoip"),
		"etc/nginx/modsecurity.conf":   link("modsecurity/modsecurity.conf"),
		"etc/nginx/unicode.mapping":    link("modsecurity/unicode.mapping"),
		// What is mounted at a path of ingress-nginx's image with a chroot is where it is without.
		"chroot":                   link("/"),
		"tmp":                      dir(0o777|sticky, 0, 0),
		"root":                     dir(0o700, 0, 0),
		"var/log/nginx/access.log": link("/dev/stdout"),
		"var/log/nginx/error.log":  link("/dev/stderr"),
	}
	for name, f := range ruleSet() {
		files[name] = f
	}
	for _, name := range []string{"proc", "sys", "dev", "home", "etc/nginx/template", "etc/nginx/lua/plugins", "modules_mount", "usr/local/certificates"} {
		files[name] = dir(0o755, 0, 0)
	}
	for _, name := range []string{
		"etc/ingress-controller", "etc/ingress-controller/auth", "etc/ingress-controller/geoip", "etc/ingress-controller/ssl",
		"etc/ingress-controller/telemetry", "run", "tmp/nginx", "var/lib/nginx", "var/log", "var/log/audit", "var/log/nginx",
	} {
		files[name] = dir(0o755, User, Group)
	}
	return files
}

// ruleSet are the core rules of ModSecurity where ingress-nginx's image has them, with the
// file that includes all. They are Debian's, which are in two folders.
func ruleSet() map[string]File {
	const (
		rules, settings = "usr/share/modsecurity-crs/", "/etc/modsecurity/crs/"
		before, after   = "REQUEST-900-EXCLUSION-RULES-BEFORE-CRS.conf", "RESPONSE-999-EXCLUSION-RULES-AFTER-CRS.conf"
	)
	return map[string]File{
		"etc/nginx/owasp-modsecurity-crs": link("/" + rules),
		rules + "crs-setup.conf":          link(settings + "crs-setup.conf"),
		rules + "rules/" + before:         link(settings + before),
		rules + "rules/" + after:          link(settings + after),
		rules + "nginx-modsecurity.conf": text("Include /etc/nginx/owasp-modsecurity-crs/crs-setup.conf\n" +
			"Include /etc/nginx/owasp-modsecurity-crs/rules/*.conf\n"),
	}
}

const sticky = 0o1000

func text(content string) File { return File{Kind: tar.TypeReg, Mode: 0o644, Content: []byte(content)} }

func link(target string) File { return File{Kind: tar.TypeSymlink, Mode: 0o777, Target: target} }

func dir(mode int64, user, group int) File {
	return File{Kind: tar.TypeDir, Mode: mode, User: user, Group: group}
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
