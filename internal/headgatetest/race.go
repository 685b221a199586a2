//go:build race

package headgatetest

// Raced reports whether the race detector watches. A test that sends many thousands of requests in one
// goroutine takes a sample then: they take several times longer, and show it the same again and again.
const Raced = true
