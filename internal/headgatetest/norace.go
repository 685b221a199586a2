//go:build !race

package headgatetest

// Raced reports whether the race detector watches: see race.go.
const Raced = false
