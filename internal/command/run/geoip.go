package run

import (
	"log/slog"

	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/source/geodb"
)

// followGeoDatabases follows the databases.
func (o program) followGeoDatabases(dir *rundir.Dir, log *slog.Logger) *geodb.Folder {
	settings := o.GeoDatabases()
	if o.IsControl() {
		// Each edge has its own.
		settings.Editions = nil
	}
	settings.Copies, settings.Log = dir.GeoDatabases(), log
	return geodb.New(settings)
}
