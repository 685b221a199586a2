package main

import "github.com/spf13/pflag"

// scopeOptions are what the flags say of what is left out.
type scopeOptions struct {
	disableSyncEvents bool
}

func (o *scopeOptions) addScopeFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.disableSyncEvents, "disable-sync-events", false, "write no Event when an Ingress was taken")
}
