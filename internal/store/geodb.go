package store

import (
	"maps"
	"slices"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
)

// applyGeoDatabase touches the globals: no host has anything of a database.
func (s *Store) applyGeoDatabase(object *source.GeoDatabase, deleted bool) []unit.Key {
	if _, changed := put(s.geoDatabases, object.Name, object, deleted); !changed {
		return nil
	}
	return []unit.Key{unit.GlobalsKey}
}

// GeoDatabases are those that were looked for, sorted by edition.
func (s *Store) GeoDatabases() []feature.GeoDatabase {
	var list []feature.GeoDatabase
	for _, edition := range slices.Sorted(maps.Keys(s.geoDatabases)) {
		d := s.geoDatabases[edition]
		list = append(list, feature.GeoDatabase{Edition: edition, Digest: d.Digest, Problem: d.Problem})
	}
	return list
}
