package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// ClusterResults is what was measured on a real API server.
type ClusterResults struct {
	Scales []ClusterScale `json:"scales"`
	Storm  Storm          `json:"storm"`
}

// A ClusterScale is what was measured at one number of Ingresses, each with a
// Service of five endpoints, every tenth with a certificate.
type ClusterScale struct {
	Ingresses    int `json:"ingresses"`
	Services     int `json:"services"`
	Endpoints    int `json:"endpoints"`
	Certificates int `json:"certificates"`
	// Ready is the time from Headgate's start to its readiness, and Requests
	// are those that the API server got from it until then.
	Ready    float64 `json:"ready_ms"`
	Requests int     `json:"api_requests"`
	// ControllerReady and ControllerPeak are the most resident memory that the
	// controller had until it was ready, and until the end.
	ControllerReady int64 `json:"controller_ready_bytes"`
	ControllerPeak  int64 `json:"controller_peak_bytes"`
	// WorkerIdle and WorkerUsed are a worker's private memory before it served
	// anything, and when it has served every host and certificate.
	WorkerIdle int64 `json:"worker_idle_bytes"`
	WorkerUsed int64 `json:"worker_used_bytes"`
	// Changes are in the order in which each sample makes them.
	Changes []Change `json:"changes"`
	// Bystander is a client of another host beside the changes.
	Bystander Bystander `json:"bystander"`
	Reloads   int       `json:"reloads"`
}

// A Bystander is the result of a client of hosts that should not be affected.
type Bystander struct {
	Requests int `json:"requests"`
	Lost     int `json:"lost"`
}

// A kube is a cluster without pods, with a client for many requests.
type kube struct {
	*clustertest.Cluster
	layout
	client kubernetes.Interface
	stage  *stage
	place  place
	// created is the number of Ingresses so far, fresh that of endpoint addresses, and
	// namespaces that of those of the layout.
	created, fresh, namespaces int
	endpointPort               int32
	endpoints                  *http.Server
	kubeconfig                 string
}

func measureCluster(ctx context.Context, s *stage, n size) (results *ClusterResults, err error) {
	k, err := s.startCluster(ctx, layout{certificateEvery: 10})
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := k.close(); err == nil {
			err = closeErr
		}
	}()
	results = &ClusterResults{}
	for i, ingresses := range n.scales {
		fmt.Fprintf(os.Stderr, "real API server, %d Ingresses\n", ingresses)
		if err := k.fill(ctx, ingresses); err != nil {
			return nil, fmt.Errorf("create %d Ingresses: %w", ingresses, err)
		}
		storm := &results.Storm
		if i < len(n.scales)-1 {
			storm = nil
		}
		scale, err := k.measureScale(ctx, n.samples, storm)
		if err != nil {
			return nil, fmt.Errorf("%d Ingresses: %w", ingresses, err)
		}
		results.Scales = append(results.Scales, scale)
	}
	return results, nil
}

func (s *stage) startCluster(ctx context.Context, spread layout) (*kube, error) {
	cluster, err := clustertest.New(ctx, clustertest.Options{WithoutPods: true})
	if err != nil {
		return nil, err
	}
	k := &kube{Cluster: cluster, layout: spread, stage: s, place: place{
		name: "cluster", runDir: filepath.Join(s.dir, "cluster-run"), http: 80, https: 443, health: 10254,
	}}
	if err := k.prepare(ctx); err != nil {
		_ = k.close() // of no interest beside the other one
		return nil, fmt.Errorf("prepare the cluster: %w", err)
	}
	return k, nil
}

func (k *kube) close() error {
	for _, p := range k.stage.processes {
		if p.inside {
			p.stop()
		}
	}
	if k.endpoints != nil {
		k.endpoints.Close()
	}
	return k.Close()
}

func (k *kube) prepare(ctx context.Context) error {
	config := k.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "headgate-bench"
	var err error
	if k.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := k.startEndpoints(); err != nil {
		return err
	}
	if err := k.createBasics(ctx); err != nil {
		return err
	}
	return k.createAccount(ctx)
}

// startEndpoints answers at every address that the EndpointSlices name, with
// that address.
func (k *kube) startEndpoints() error {
	listener, err := k.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return err
	}
	k.endpointPort = int32(listener.Addr().(*net.TCPAddr).Port)
	k.endpoints = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		fmt.Fprint(w, address)
	})}
	go func() {
		// It ends when it is closed.
		_ = k.endpoints.Serve(listener)
	}()
	return nil
}

// startHeadgate starts Headgate in the cluster's network, with further arguments.
func (k *kube) startHeadgate(ctx context.Context, further ...string) (*headgate, error) {
	return k.stage.launch(ctx, k.place, k.Dial, func(args ...string) (*process, error) {
		// Not ctx: Headgate gets SIGTERM, and ends its NGINX.
		cmd := k.Command(context.WithoutCancel(ctx), k.stage.headgate,
			slices.Concat(args, []string{"--kubeconfig", k.kubeconfig, "--post-shutdown-grace-period", "0"}, further)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
		p, err := k.stage.startCommand(k.place.name, cmd)
		if p != nil {
			p.inside = true
		}
		return p, err
	})
}

// measureScale measures at the number of Ingresses that there are, and, if it
// is asked for, the storm.
func (k *kube) measureScale(ctx context.Context, samples int, storm *Storm) (ClusterScale, error) {
	scale := ClusterScale{
		Ingresses: k.created, Services: k.created, Endpoints: k.created * endpointsEach,
		Certificates: k.certificates(k.created),
	}
	h, err := k.startScale(ctx, &scale)
	if err != nil {
		return scale, err
	}
	defer h.process.stop()
	if err := h.useAll(ctx, &scale, k.certificateEvery); err != nil {
		return scale, err
	}
	if err := k.change(ctx, h, samples, &scale); err != nil {
		return scale, err
	}
	if scale.Reloads, err = h.reloads(); err != nil {
		return scale, err
	}
	peak, err := status(h.process.cmd.Process.Pid, "VmHWM")
	if err != nil {
		return scale, err
	}
	// The kernel's own count may go down by some pages.
	scale.ControllerPeak = max(peak, scale.ControllerReady)
	if storm == nil {
		return scale, nil
	}
	fmt.Fprintln(os.Stderr, "real API server, storm")
	if *storm, err = k.storm(ctx, h); err != nil {
		return scale, fmt.Errorf("storm: %w", err)
	}
	return scale, nil
}

// startScale starts Headgate, and reads what that took.
func (k *kube) startScale(ctx context.Context, scale *ClusterScale) (h *headgate, err error) {
	before, err := k.requests(ctx)
	if err != nil {
		return nil, err
	}
	if h, err = k.startHeadgate(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.process.stop()
		}
	}()
	after, err := k.requests(ctx)
	if err != nil {
		return nil, err
	}
	if after == before {
		return nil, fmt.Errorf("the API server counted no request of Headgate's")
	}
	scale.Ready, scale.Requests = milliseconds(h.ready), after-before
	if scale.ControllerReady, err = status(h.process.cmd.Process.Pid, "VmHWM"); err != nil {
		return nil, err
	}
	scale.WorkerIdle, err = privateMemory(h.worker)
	return h, err
}

// useAll reads what a worker takes to serve every host and every certificate, which each
// certificateEvery-th host has.
func (h *headgate) useAll(ctx context.Context, scale *ClusterScale, certificateEvery int) error {
	if err := h.touchAll(ctx, scale.Ingresses); err != nil {
		return err
	}
	for i := 0; i < scale.Ingresses; i += certificateEvery {
		if _, err := h.handshake(ctx, hostName(i)); err != nil {
			return err
		}
	}
	var err error
	scale.WorkerUsed, err = privateMemory(h.worker)
	return err
}

// quiet lies between two changes, so that each is one on its own.
const quiet = 20 * time.Millisecond
