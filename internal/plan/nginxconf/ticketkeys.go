package nginxconf

import (
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// addDHParam adds the DH parameters to the static files, and returns their name, empty if there are none.
func addDHParam(files map[string][]byte, dir Path, tls model.TLS) string {
	if tls.DHParam.Name == "" {
		return ""
	}
	file := directive.Files + "/" + tls.DHParam.Name
	files[file] = tls.DHParam.Bytes
	return dir.String() + "/" + file
}

// addTicketKeys adds the keys of session tickets to the static files, and returns their names.
// Workers have them from the master, which reads the files.
func addTicketKeys(files map[string][]byte, dir Path, tls model.TLS) (names []string) {
	if !tls.Tickets {
		return nil
	}
	for _, key := range tls.TicketKeys {
		file := directive.Files + "/" + key.Name
		files[file] = key.Bytes
		names = append(names, dir.String()+"/"+file)
	}
	return names
}
