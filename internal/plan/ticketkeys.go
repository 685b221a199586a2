package plan

import (
	"github.com/headgate/headgate/internal/directive"
	"github.com/headgate/headgate/internal/model"
)

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
