// Package compat_test compares Headgate with ingress-nginx: cases/ has recorded
// answers of ingress-nginx, and FORMAT.md describes their format. The tests need
// root, for a real Kubernetes, and the NGINX of Debian 13.
package compat_test

import (
	"os"
	"testing"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// shared runs everything: some cases need kube-proxy.
var shared clustertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
