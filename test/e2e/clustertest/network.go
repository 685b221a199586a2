package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A network is the cluster's network namespace, and the test's own to come
// back to.
type network struct {
	pid       int // a process inside
	own, peer *os.File
}

func openNetwork(pid int) (*network, error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("opening the test's network: %w", err)
	}
	peer, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the cluster's network: %w", err), own.Close())
	}
	return &network{pid: pid, own: own, peer: peer}, nil
}

func (n *network) close() error { return errors.Join(n.own.Close(), n.peer.Close()) }

// within runs do on a thread that is in the cluster's network. A socket stays
// in the network that it was made in, so that do may hand one out.
func (n *network) within(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(n.peer.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("entering the cluster's network: %w", err)
			return
		}
		err := do()
		if back := unix.Setns(int(n.own.Fd()), unix.CLONE_NEWNET); back != nil {
			// Still locked, so that the thread ends with the goroutine.
			done <- errors.Join(err, fmt.Errorf("leaving the cluster's network: %w", back))
			return
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// Dial connects from the node to an IP address and port in the cluster's
// network: a pod's, a Service's, the node's. It does not resolve names.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := literal(address); err != nil {
		return nil, fmt.Errorf("dialing in the cluster: %w", err)
	}
	var conn net.Conn
	err := c.network.within(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// literal rejects host names: Go would look them up on another thread.
func literal(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if net.ParseIP(host) == nil {
		return fmt.Errorf("invalid host %q: must be an IP address", host)
	}
	return nil
}

// Listen listens in the cluster's network, on the node. The host of the address
// is an IP address or empty.
func (c *Cluster) Listen(network, address string) (net.Listener, error) {
	var listener net.Listener
	err := c.network.within(func() (err error) {
		listener, err = net.Listen(network, address)
		return err
	})
	return listener, err
}

// ListenPacket opens a socket for datagrams in the cluster's network, on the node. The host of
// the address is an IP address or empty.
func (c *Cluster) ListenPacket(network, address string) (net.PacketConn, error) {
	var socket net.PacketConn
	err := c.network.within(func() (err error) {
		socket, err = net.ListenPacket(network, address)
		return err
	})
	return socket, err
}

// Transport returns an HTTP transport whose connections all go to one address
// in the cluster's network, for URLs with any host, like the DNS that leads
// clients to an Ingress controller. With an empty address it dials the URL's
// host, which must be an IP address.
func (c *Cluster) Transport(address string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, asked string) (net.Conn, error) {
			if address != "" {
				asked = address
			}
			return c.Dial(ctx, network, asked)
		},
		MaxIdleConnsPerHost: 1000,
		ForceAttemptHTTP2:   true,
	}
}

// Command returns a command that runs in the cluster's network, on the node, and
// otherwise in the environment of the test process. KUBECONFIG names the cluster.
// The command is killed when the test process ends, and when ctx does.
func (c *Cluster) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{"--target", strconv.Itoa(c.network.pid), "--net", "--", name}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	// There is no proxy to reach.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasSuffix(strings.ToLower(strings.SplitN(variable, "=", 2)[0]), "_proxy")
	})
	cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}
