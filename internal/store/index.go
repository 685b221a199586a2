package store

import "slices"

// An index has the values of each key, in no order. Most keys have one value, for
// which a slice needs the least memory.
type index[K, V comparable] map[K][]V

func (x index[K, V]) add(key K, value V) {
	x[key] = append(x[key], value)
}

// remove takes one value from under the key.
func (x index[K, V]) remove(key K, value V) {
	values := x[key]
	i := slices.Index(values, value)
	if i < 0 {
		return
	}
	if len(values) == 1 {
		delete(x, key)
		return
	}
	last := len(values) - 1
	values[i] = values[last]
	clear(values[last:])
	x[key] = values[:last]
}
