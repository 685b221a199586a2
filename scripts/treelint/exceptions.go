package main

// exceptions are what is over a limit, by name, with the reason.
func exceptions() map[string]string {
	const (
		bench   = "measurements, one after the other"
		writers = "the only module that may write NGINX's variables (.luacheckrc)"
	)
	return map[string]string{
		"bench":           bench,
		"bench/attack.go": bench,
		"bench/attacks.go:func attacks() []attack {": "a table",
		"lua/headgate/request.lua":                   writers,
	}
}
