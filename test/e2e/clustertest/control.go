package clustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// StopAPIServer kills the API server. Its connections are reset and no new one
// is accepted until StartAPIServer.
func (c *Cluster) StopAPIServer(ctx context.Context) error {
	return c.control(ctx, "components/kube-apiserver/stop", nil)
}

// StartAPIServer starts the API server again and waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	return c.control(ctx, "components/kube-apiserver/start", nil)
}

// PauseAPIServer freezes the API server: its connections stay open and new ones
// are accepted, but nothing answers until ResumeAPIServer.
func (c *Cluster) PauseAPIServer(ctx context.Context) error {
	return c.control(ctx, "components/kube-apiserver/pause", nil)
}

// ResumeAPIServer ends what PauseAPIServer began.
func (c *Cluster) ResumeAPIServer(ctx context.Context) error {
	return c.control(ctx, "components/kube-apiserver/resume", nil)
}

// StopNode kills the kubelet, containerd and the processes of all pods at once, like a machine
// without power. Everything else runs on.
func (c *Cluster) StopNode(ctx context.Context) error { return c.control(ctx, "node/stop", nil) }

// StartNode starts the node again, and waits until the kubelet has reported it. Pods may still
// be starting, with other addresses.
func (c *Cluster) StartNode(ctx context.Context) error { return c.control(ctx, "node/start", nil) }

// Snapshot keeps a copy of all objects under a name of small letters, digits
// and hyphens. The API server is killed and started again on the way.
func (c *Cluster) Snapshot(ctx context.Context, name string) error {
	return c.control(ctx, "snapshots/"+name+"/save", nil)
}

// Restore goes back to a snapshot: objects, and resource versions too, are as
// they were, as after a restored backup of etcd. The API server and its clients
// among Kubernetes' components are killed and started again. Other clients have
// seen newer versions than there are now.
func (c *Cluster) Restore(ctx context.Context, name string) error {
	return c.control(ctx, "snapshots/"+name+"/restore", nil)
}

// An Image is a container image to make from files, with no registry.
type Image struct {
	// Name has a tag. Pods use it with the pull policy Never.
	Name       string   `json:"name"`
	Entrypoint []string `json:"entrypoint"`
	Env        []string `json:"env,omitempty"`
	User       string   `json:"user,omitempty"`
	// Files leads from paths in the image to files or directories of this
	// machine, which must not be below /run, /var/lib or /var/log.
	Files map[string]string `json:"files"`
}

// LoadImage makes the image and gives it to the node.
func (c *Cluster) LoadImage(ctx context.Context, image Image) error {
	body, err := json.Marshal(image)
	if err != nil {
		return fmt.Errorf("describing the image %s: %w", image.Name, err)
	}
	return c.control(ctx, "images", bytes.NewReader(body))
}

// ImportArchive gives the node all images of an archive of OCI or Docker, under the names that
// they have there. Pods use them with the pull policy Never.
func (c *Cluster) ImportArchive(ctx context.Context, path string) error {
	archive, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("importing images: %w", err)
	}
	defer archive.Close()
	return c.control(ctx, "archives", archive)
}

// control asks the cluster's program for something and waits until it is done.
func (c *Cluster) control(ctx context.Context, what string, body io.Reader) error {
	socket := filepath.Join(c.dir, "control.sock")
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cluster/"+what, body)
	if err != nil {
		return fmt.Errorf("asking the cluster for %s: %w", what, err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("asking the cluster for %s: %w", what, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNoContent {
		return nil
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("asking the cluster for %s: %w", what, err)
	}
	return fmt.Errorf("asking the cluster for %s: %s", what, strings.TrimSpace(string(text)))
}
