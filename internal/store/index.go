package store

import "slices"

// An index has the values of each key, in no order. Most keys have one value, for
// which a slice needs the least memory.
type index[K, V comparable] map[K][]V

func (x *index[K, V]) add(key K, value V) {
	if *x == nil {
		*x = index[K, V]{}
	}
	(*x)[key] = append((*x)[key], value)
}

// remove takes one value from under the key.
func (x index[K, V]) remove(key K, value V) {
	values := x[key]
	i, last := slices.Index(values, value), len(values)-1
	if i < 0 {
		return
	}
	values[i] = values[last]
	if x[key] = slices.Delete(values, last, last+1); last == 0 {
		delete(x, key)
	}
}
