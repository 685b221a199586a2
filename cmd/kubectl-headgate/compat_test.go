package main

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The flags of ingress-nginx's plugin, with their short forms.
const (
	podFlagNames  = "pod deployment selector/l container"
	lintFlagNames = "all-namespaces show-all verbose/v from-version/f to-version/t"
	kubectlNames  = "namespace/n context cluster kubeconfig as as-group as-uid server/s token user request-timeout cache-dir " +
		"certificate-authority client-certificate client-key insecure-skip-tls-verify tls-server-name disable-compression"
)

// TestSameFlags: the commands of ingress-nginx's plugin are there, with their flags.
func TestSameFlags(t *testing.T) {
	root := newPlugin("ingress_nginx", genericiooptions.NewTestIOStreamsDiscard(), nil).command()
	for command, flags := range map[string]string{
		"backends":         podFlagNames + " backend list",
		"certs":            podFlagNames + " host",
		"conf":             podFlagNames + " host",
		"exec":             podFlagNames + " tty/t stdin/i",
		"general":          podFlagNames,
		"info":             "service",
		"ingresses":        "host all-namespaces",
		"ingress":          "host all-namespaces",
		"ing":              "host all-namespaces",
		"lint":             lintFlagNames,
		"lint ingresses":   lintFlagNames,
		"lint deployments": lintFlagNames,
		"logs":             podFlagNames + " follow/f timestamps limit-bytes previous/p tail since-time since",
		"ssh":              podFlagNames,
	} {
		found, rest, err := root.Find(strings.Fields(command))
		if err != nil || len(rest) > 0 || found == root {
			t.Errorf("there is no command %s: %v", command, err)
			continue
		}
		for name := range strings.FieldsSeq(flags + " " + kubectlNames) {
			name, short, _ := strings.Cut(name, "/")
			// InheritedFlags also adds them to Flags.
			found.InheritedFlags()
			if f := found.Flags().Lookup(name); f == nil || f.Shorthand != short && short != "" {
				t.Errorf("%s: there is no flag --%s -%s", command, name, short)
			}
		}
	}
}
