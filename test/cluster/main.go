// Cluster runs a real Kubernetes of one node for tests, in namespaces of its
// own. It is one program with many names: `cluster up` starts everything, each
// component as a process of its own made from this same program.
//
// It does not know Headgate.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// commands has the constructor of each program. Only one is called in a
// process: they register flags and feature gates in globals of their modules.
func commands() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"up":                      upCommand,
		"inside":                  insideCommand,
		"etcd":                    etcdCommand,
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-proxy":              proxy.NewProxyCommand,
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kubectl":                 kubectl.NewDefaultKubectlCommand,
	}
}

func main() {
	all := commands()
	name := filepath.Base(os.Args[0])
	if all[name] == nil && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	if all[name] == nil {
		fmt.Fprintf(os.Stderr, "usage: cluster PROGRAM [flags]; the programs: %q\n", slices.Sorted(maps.Keys(all)))
		os.Exit(2)
	}
	os.Exit(cli.Run(all[name]()))
}
