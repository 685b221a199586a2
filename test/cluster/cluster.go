package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A cluster is the set of components. Its methods are not for concurrent use.
type cluster struct {
	settings
	keys     *pki
	progress func(string)
	died     chan error

	// In the order in which they start. The others are nil without pods.
	etcd, api, controllers                  *component
	containerd, kubelet, scheduler, proxies *component
}

func newCluster(s settings, keys *pki, progress func(string)) *cluster {
	// A component may die before anything receives from the channel.
	c := &cluster{settings: s, keys: keys, progress: progress, died: make(chan error, 16)}
	c.etcd = c.own("etcd", httpOK(etcdClientURL+"/health"), "--data-dir="+c.etcdDir())
	c.api = c.own("kube-apiserver", c.apiReady, c.apiArguments()...)
	c.controllers = c.own("kube-controller-manager", httpOK("https://127.0.0.1:10257/healthz"), c.controllerArguments()...)
	if s.pods {
		// containerd leaves a process behind for each pod, and does not reap it.
		c.containerd = c.component("containerd", s.pause, containerdReady, "containerd", "--config="+c.file("containerd.toml"))
		c.kubelet = c.own("kubelet", c.nodeReady, c.kubeletArguments()...)
		c.scheduler = c.own("kube-scheduler", httpOK("https://127.0.0.1:10259/healthz"), c.schedulerArguments()...)
		c.proxies = c.own("kube-proxy", servicesReady, c.proxyArguments()...)
	}
	return c
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }
func (c *cluster) etcdDir() string         { return c.file("etcd") }

// own is a component that is part of this program.
func (c *cluster) own(name string, ready func(context.Context) error, args ...string) *component {
	return c.component(name, "/proc/self/exe", ready, append([]string{name}, args...)...)
}

func (c *cluster) component(name, path string, ready func(context.Context) error, args ...string) *component {
	return &component{
		name: name, path: path, args: args, ready: ready,
		log: filepath.Join(c.dir, "log", name+".log"), died: c.died,
	}
}

// clients are the components that talk to the API server.
func (c *cluster) clients() []*component {
	if !c.pods {
		return []*component{c.controllers}
	}
	return []*component{c.controllers, c.scheduler, c.kubelet, c.proxies}
}

// start starts everything and waits until the cluster can be used.
func (c *cluster) start(ctx context.Context) error {
	runtime := make(chan error, 1)
	if c.pods {
		go func() { runtime <- c.startRuntime(ctx) }()
	} else {
		runtime <- nil
	}
	if err := c.run(ctx, c.etcd); err != nil {
		return err
	}
	if err := c.api.start(); err != nil {
		return err
	}
	if err := <-runtime; err != nil {
		return err
	}
	// They retry until the API server answers.
	for _, client := range c.clients() {
		if err := client.start(); err != nil {
			return err
		}
	}
	if err := c.wait(ctx, c.api); err != nil {
		return err
	}
	if err := c.waitDefaults(ctx); err != nil {
		return err
	}
	for _, client := range c.clients() {
		if err := c.wait(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) run(ctx context.Context, one *component) error {
	if err := one.start(); err != nil {
		return err
	}
	return c.wait(ctx, one)
}

func (c *cluster) wait(ctx context.Context, one *component) error {
	if err := one.waitReady(ctx); err != nil {
		return err
	}
	c.progress(one.name + " is ready")
	return nil
}

// waitDefaults waits for what pods need in the default namespace.
func (c *cluster) waitDefaults(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	for {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-c.controllers.done:
			return errors.New("kube-controller-manager ended before it made a service account")
		case <-ctx.Done():
			return fmt.Errorf("waiting for the default service account: %w; last: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *cluster) client() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.keys.path("admin.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's kubeconfig: %w", err)
	}
	return kubernetes.NewForConfig(config)
}

func (c *cluster) apiReady(ctx context.Context) error {
	cert, err := tls.LoadX509KeyPair(c.keys.path("admin.crt"), c.keys.path("admin.key"))
	if err != nil {
		return err
	}
	return ask(ctx, "https://127.0.0.1:6443/readyz", cert)
}

func (c *cluster) nodeReady(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return errors.New("the node is not ready: " + condition.Message)
		}
	}
	return errors.New("the node has not reported its status yet")
}

// servicesReady checks that Services are reachable, by the one that every cluster
// has.
func servicesReady(ctx context.Context) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(apiServiceAddress, "443"))
	if err != nil {
		return err
	}
	return conn.Close()
}

func httpOK(url string) func(context.Context) error {
	return func(ctx context.Context) error { return ask(ctx, url) }
}

// ask fails unless the answer is 200. It trusts any certificate: the address
// is the cluster's own.
func ask(ctx context.Context, url string, certs ...tls.Certificate) error {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}, DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return nil
}

// stopStore stops the API server, as a crash does, and etcd, cleanly.
func (c *cluster) stopStore() error {
	if err := c.api.end(syscall.SIGKILL); err != nil {
		return err
	}
	return c.etcd.end(syscall.SIGTERM)
}

func (c *cluster) startStore(ctx context.Context) error {
	if err := c.run(ctx, c.etcd); err != nil {
		return err
	}
	return c.run(ctx, c.api)
}
