package main

import "github.com/spf13/pflag"

// scopeOptions are the flags about Events.
type scopeOptions struct {
	disableSyncEvents bool
}

func (o *scopeOptions) addScopeFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.disableSyncEvents, "disable-sync-events", false, "don't write Events for Ingresses that are applied")
}
