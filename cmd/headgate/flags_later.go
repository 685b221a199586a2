package main

import (
	"github.com/spf13/pflag"
)

// laterUsage is the help of a flag that is accepted without effect.
const laterUsage = withoutEffect + " in this version"

// addLaterFlags declares the flags of ingress-nginx that Headgate accepts without
// effect, so that a Deployment for ingress-nginx starts: their names, types and
// defaults. A flag that gets an effect moves to newCommand.
func addLaterFlags(f *pflag.FlagSet) {
	for name, value := range map[string]any{
		"stream-port": 10247,
	} {
		switch value := value.(type) {
		case bool:
			f.Bool(name, value, laterUsage)
		case string:
			f.String(name, value, laterUsage)
		case int:
			f.Int(name, value, laterUsage)
		}
	}
}
