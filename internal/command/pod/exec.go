package pod

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// A Command is run in a container.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// In is the standard input, or nil.
	In io.Reader
	// Out and Err get the output. With TTY, all of it goes to Out.
	Out, Err io.Writer
	// TTY runs the command in a terminal, and Sizes has its sizes.
	TTY   bool
	Sizes remotecommand.TerminalSizeQueue
}

// Exec runs a command and waits for its end. If the command fails, the error is
// k8s.io/client-go/util/exec.CodeExitError.
type Exec func(context.Context, Target, Command) error

// NewExec returns an Exec that asks the API server, by WebSocket or, where that is not
// possible, by SPDY.
func NewExec(config *rest.Config, client kubernetes.Interface) Exec {
	return func(ctx context.Context, t Target, c Command) error {
		address := client.CoreV1().RESTClient().Post().Namespace(t.Namespace).Resource("pods").Name(t.Pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{
				Container: t.Container, Command: c.Args, Stdin: c.In != nil, Stdout: true, Stderr: !c.TTY, TTY: c.TTY,
			}, scheme.ParameterCodec).URL()
		spdy, err := remotecommand.NewSPDYExecutor(config, "POST", address)
		if err != nil {
			return fmt.Errorf("connect to pod %s: %w", t.Pod, err)
		}
		// A WebSocket begins with GET.
		webSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", address.String())
		if err != nil {
			return fmt.Errorf("connect to pod %s: %w", t.Pod, err)
		}
		either, err := remotecommand.NewFallbackExecutor(webSocket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
		if err != nil {
			return fmt.Errorf("connect to pod %s: %w", t.Pod, err)
		}
		options := remotecommand.StreamOptions{Stdin: c.In, Stdout: c.Out, Tty: c.TTY, TerminalSizeQueue: c.Sizes}
		if !c.TTY {
			options.Stderr = c.Err
		}
		return either.StreamWithContext(ctx, options)
	}
}
