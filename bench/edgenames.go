package main

import (
	"sync"

	"github.com/headgate/headgate/internal/unit"
)

// names has one copy of each name and version: hundreds of edges have the same ones.
type names struct {
	mu       sync.RWMutex
	keys     map[unit.Key]int32
	versions map[string]int32
	key      []unit.Key
	version  []string
	texts    sync.Map
}

func newNames() *names {
	// 0 is none.
	return &names{keys: map[unit.Key]int32{}, versions: map[string]int32{}, key: make([]unit.Key, 1), version: make([]string, 1)}
}

// text is a copy of a text that all have.
func (n *names) text(s string) string {
	one, _ := n.texts.LoadOrStore(s, s)
	return one.(string)
}

// of are the numbers of a name and a version.
func (n *names) of(key unit.Key, version string) (int32, int32) {
	n.mu.RLock()
	k, v := n.keys[key], n.versions[version]
	n.mu.RUnlock()
	if k != 0 && (v != 0 || version == "") {
		return k, v
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if k = n.keys[key]; k == 0 {
		k = int32(len(n.key))
		n.keys[key], n.key = k, append(n.key, key)
	}
	if v = n.versions[version]; v == 0 && version != "" {
		v = int32(len(n.version))
		n.versions[version], n.version = v, append(n.version, version)
	}
	return k, v
}
