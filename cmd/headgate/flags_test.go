package main

import (
	"context"
	"strings"
	"testing"
)

// TestRefusedFlags: what can't be meant is refused before anything starts.
func TestRefusedFlags(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct{ flags, want string }{
		{"", "not running in a Pod, and neither a kubeconfig file nor the API server's URL is set"},
		{"--manifests-dir . --kubeconfig x", "leave out --kubeconfig and --apiserver-host"},
		{"--manifests-dir . --apiserver-host http://127.0.0.1", "leave out --kubeconfig and --apiserver-host"},
		{"--certificate-authority ca.crt", "goes with --apiserver-host, which is missing"},
		{"--apiserver-host https://127.0.0.1 --certificate-authority /nowhere/ca.crt", "read the certificate authority"},
		{"--kubeconfig /nowhere/config", "/nowhere/config"},
		{"--apiserver-host http://127.0.0.1 --kube-api-qps 0", "--kube-api-qps and --kube-api-burst"},
		{"--apiserver-host http://127.0.0.1 --kube-api-burst -1", "--kube-api-qps and --kube-api-burst"},
		{"--configmap options --manifests-dir .", "allowed is NAMESPACE/NAME"},
		{"--manifests-dir /nowhere", "manifests folder"},
	} {
		command := newCommand()
		command.SetArgs(strings.Fields(c.flags))
		if err := command.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: the error is %v, want one with %q", c.flags, err, c.want)
		}
	}
}
