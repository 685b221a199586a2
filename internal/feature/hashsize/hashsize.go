// Package hashsize has the sizes of NGINX's hash tables. Headgate's own configuration does
// not need them: hosts, routes and headers are not in it. What the administrator adds to it may.
package hashsize

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// NGINX has no bucket of 64 KiB less a line of the processor's cache or more.
const (
	maxBucket = 32 << 10
	maxTable  = 1 << 20
)

var (
	mapBucket          = bucket("map-hash-bucket-size", 64, "the tables of `map`")
	proxyHeadersBucket = bucket("proxy-headers-hash-bucket-size", 64, "the tables of headers of requests to backends")
	proxyHeadersMax    = table("proxy-headers-hash-max-size", 512, "the tables of headers of requests to backends")
	serverNamesBucket  = bucket("server-name-hash-bucket-size", 0, "the table of server names")
	serverNamesMax     = table("server-name-hash-max-size", 1024, "the table of server names")
	variablesBucket    = bucket("variables-hash-bucket-size", 256, "the table of variables")
	variablesMax       = table("variables-hash-max-size", 2048, "the table of variables")
)

const note = " Headgate's own configuration does not need more than the default; lines of the administrator may. A smaller value than the default has no effect."

func bucket(key string, standard int, of string) feature.Setting[int] {
	return declare(key, standard, maxBucket, "Least size in bytes of the buckets of "+of+".")
}

func table(key string, standard int, of string) feature.Setting[int] {
	return declare(key, standard, maxTable, "Maximum number of buckets of "+of+".")
}

func declare(key string, standard, most int, doc string) feature.Setting[int] {
	return feature.Setting[int]{Key: key, Default: standard, Parse: feature.Int(0, most), Scope: feature.ScopeProcess, Doc: doc + note}
}

// Feature is the sizes of hash tables.
func Feature() feature.Feature {
	return feature.Feature{
		Name: "hash_size",
		Doc:  "Sizes of NGINX's hash tables.",
		Settings: []feature.AnySetting{
			mapBucket, proxyHeadersBucket, proxyHeadersMax, serverNamesBucket, serverNamesMax, variablesBucket, variablesMax,
		},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.Hashes = model.HashSizes{
				MapBucket:          more(v, mapBucket),
				ProxyHeadersBucket: more(v, proxyHeadersBucket), ProxyHeadersMax: more(v, proxyHeadersMax),
				ServerNamesBucket: more(v, serverNamesBucket), ServerNamesMax: more(v, serverNamesMax),
				VariablesBucket: more(v, variablesBucket), VariablesMax: more(v, variablesMax),
			}
		},
	}
}

// more is a value that is greater than its default, else 0.
func more(v feature.Values, s feature.Setting[int]) int {
	if n := s.Get(v); n > s.Default {
		return n
	}
	return 0
}
