package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	pluginDir        = "/usr/lib/cni" // Debian's
	containerdSocket = "/run/containerd/containerd.sock"
	pauseImage       = "cluster.invalid/pause:1"
)

const networkConfig = `{
  "cniVersion": "1.0.0", "name": "pods", "plugins": [
    {"type": "bridge", "bridge": "BRIDGE", "isGateway": true, "ipMasq": false, "hairpinMode": true,
     "ipam": {"type": "host-local", "dataDir": "DIR/addresses", "routes": [{"dst": "0.0.0.0/0"}],
       "ranges": [[{"subnet": "PODS", "gateway": "NODE", "rangeStart": "FIRST", "rangeEnd": "LAST"}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// Without restrict_oom_score_adj and CAP_SYS_RESOURCE, runc fails with "can't get
// final child's PID from pipe". Low ports are for all users of a pod's network, as with
// containerd 2.
const containerdConfig = `version = 2
root = "DIR/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "PAUSE"
  disable_apparmor = true
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "PLUGINS"
    conf_dir = "DIR/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "SNAPSHOTTER"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

// failCgroupV1 and cgroupsPerQOS are off for version 1, and the same is asked
// of version 2, so that both go the same way. DNSPolicy ClusterFirst finds no
// server: the cluster has no names.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: NODE
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: PKI/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: PKI/kubelet.crt
tlsPrivateKeyFile: PKI/kubelet.key
containerRuntimeEndpoint: unix://SOCKET
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
evictionHard: {nodefs.available: "0%", imagefs.available: "0%", memory.available: "1Mi", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
serializeImagePulls: false
syncFrequency: 5s
configMapAndSecretChangeDetectionStrategy: Watch
nodeStatusUpdateFrequency: 2s
registerNode: true
maxPods: 200
kubeAPIQPS: 200
kubeAPIBurst: 400
protectKernelDefaults: false
makeIPTablesUtilChains: false
podLogsDir: DIR/pod-log
volumePluginDir: DIR/volume-plugins
shutdownGracePeriod: 0s
resolvConf: ""
`

// startRuntime starts containerd with everything that it keeps in the state
// directory, and gives it the image that every pod needs.
func (c *cluster) startRuntime(ctx context.Context) error {
	snapshotter, err := snapshotterFor(c.dir)
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("DIR", c.dir, "PKI", c.keys.dir, "NODE", nodeAddress, "PODS", nodePods, "FIRST", firstPod,
		"LAST", lastPod, "BRIDGE", bridge, "SOCKET", containerdSocket, "PAUSE", pauseImage, "PLUGINS", pluginDir,
		"SNAPSHOTTER", snapshotter)
	for file, text := range map[string]string{
		"cni/pods.conflist": networkConfig, "containerd.toml": containerdConfig, "kubelet.yaml": kubeletConfig,
	} {
		if err := os.MkdirAll(filepath.Dir(c.file(file)), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		if err := os.WriteFile(c.file(file), []byte(fill.Replace(text)), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
	}
	if err := c.run(ctx, c.containerd); err != nil {
		return err
	}
	return c.loadImage(ctx, image{
		Name: pauseImage, Entrypoint: []string{"/pause"},
		Files: map[string]string{"/pause": c.pause},
	})
}

// snapshotterFor returns how containerd stacks layers: an overlay can't be mounted
// on another one.
func snapshotterFor(dir string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", fmt.Errorf("looking at %s: %w", dir, err)
	}
	if stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}

func containerdReady(ctx context.Context) error { return ctr(ctx, nil, "version") }

func ctr(ctx context.Context, input io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address=" + containerdSocket, "--namespace=k8s.io"}, args...)...)
	cmd.Stdin = input
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", args[0], err, output)
	}
	return nil
}

// loadImage makes an image and gives it to containerd.
func (c *cluster) loadImage(ctx context.Context, i image) error {
	archive, err := os.CreateTemp(c.dir, "image-*.tar")
	if err != nil {
		return fmt.Errorf("making the image %s: %w", i.Name, err)
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	if err := i.write(archive); err != nil {
		return fmt.Errorf("making the image %s: %w", i.Name, err)
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("making the image %s: %w", i.Name, err)
	}
	return c.importImages(ctx, archive)
}

// importImages gives all images of an archive to containerd.
func (c *cluster) importImages(ctx context.Context, archive io.Reader) error {
	snapshotter, err := snapshotterFor(c.dir)
	if err != nil {
		return err
	}
	if err := ctr(ctx, archive, "images", "import", "--snapshotter="+snapshotter, "-"); err != nil {
		return fmt.Errorf("loading images: %w", err)
	}
	return nil
}
