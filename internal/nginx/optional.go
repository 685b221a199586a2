package nginx

import "os"

// optional is what configurations may name where it is installed.
type optional struct {
	capability string
	files      []string
}

func optionalFiles() []optional {
	const images = "/etc/nginx/owasp-modsecurity-crs/"
	return []optional{
		{"core-rules", []string{images + "crs-setup.conf", images + "rules"}},
		{"debian-core-rules", []string{"/etc/modsecurity/crs/crs-setup.conf", "/usr/share/modsecurity-crs/rules"}},
		{"unicode-mapping", []string{"/etc/nginx/unicode.mapping"}},
	}
}

// readable reports whether all of it is there.
func (o optional) readable() bool {
	for _, name := range o.files {
		file, err := os.Open(name)
		if err != nil {
			return false
		}
		file.Close()
	}
	return true
}
