package main

// exceptions are what is over a limit, by name, with the reason.
func exceptions() map[string]string {
	const (
		later = "from before the limit was checked: to be cut"
		bench = "measurements, one after the other"
	)
	return map[string]string{
		"bench":           bench,
		"bench/attack.go": bench,
		"bench/attacks.go:func attacks() []attack {": "a table",
		"lua/headgate/program.lua":                   later,
		"lua/headgate/request.lua":                   later,
	}
}
