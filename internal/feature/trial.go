package feature

import "github.com/headgate/headgate/internal/model"

// A Trial is directives as they would be in an nginx.conf in a folder, in the http block and
// in one location, with the files that they name.
type Trial struct {
	Lines func(folder string) (http, location []string)
	Files []model.Content
}

// Try tests a Trial by itself. The error says why NGINX rejects it, or why it can't be
// tested. The result depends on the Trial alone.
type Try func(Trial) error

// Try has NGINX test directives whose text a tenant or the administrator wrote: NGINX rejects
// its whole configuration for one mistake. Where there is no NGINX, as for lint, all pass.
func (v Values) Try(t Trial) error {
	if v.config.schema.Try == nil {
		return nil
	}
	return v.config.schema.Try(t)
}
