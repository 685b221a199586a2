package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// A Scale is what was measured at one number of Ingresses.
type Scale struct {
	Ingresses int `json:"ingresses"`
	// Ready is the time from Headgate's start to its readiness.
	Ready float64 `json:"ready_ms"`
	// P50, P99 and Max are of the time from a manifest's rename into the
	// folder to the first 200, over Samples new hosts.
	Samples int     `json:"samples"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
	// Reloads of NGINX since the start.
	Reloads int `json:"reloads"`
	// Requests and Lost are those of a client of another host meanwhile.
	Requests int `json:"bystander_requests"`
	Lost     int `json:"bystander_lost"`
	// ConfBytes and ConfHash are of nginx.conf.
	ConfBytes int    `json:"nginx_conf_bytes"`
	ConfHash  string `json:"nginx_conf_sha256"`
	// ControllerPeak and ControllerNow are the resident memory of the
	// controller, in bytes.
	ControllerPeak int64 `json:"controller_peak_bytes"`
	ControllerNow  int64 `json:"controller_now_bytes"`
	// WorkerIdle and WorkerUsed are a worker's private memory before it
	// served anything, and when it has served every host.
	WorkerIdle int64 `json:"worker_idle_bytes"`
	WorkerUsed int64 `json:"worker_used_bytes"`
}

// measureScales runs Headgate in the same place with more and more Ingresses.
func measureScales(ctx context.Context, s *stage, n size) ([]Scale, error) {
	at, err := s.place("scale")
	if err != nil {
		return nil, err
	}
	var scales []Scale
	for _, ingresses := range n.scales {
		fmt.Fprintf(os.Stderr, "propagation, %d Ingresses\n", ingresses)
		scale, err := s.measureScale(ctx, at, ingresses, n.samples)
		if err != nil {
			return nil, fmt.Errorf("%d Ingresses: %w", ingresses, err)
		}
		scales = append(scales, scale)
	}
	return scales, nil
}

func (s *stage) measureScale(ctx context.Context, at place, ingresses, samples int) (Scale, error) {
	scale := Scale{Ingresses: ingresses, Samples: samples}
	if err := writeFolder(at.folder, ingresses, s.backend, false, exactRouting); err != nil {
		return scale, err
	}
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return scale, err
	}
	defer h.process.stop()
	scale.Ready = milliseconds(h.ready)

	if scale.WorkerIdle, err = privateMemory(h.worker); err != nil {
		return scale, err
	}
	if err := h.touchAll(ctx, ingresses); err != nil {
		return scale, err
	}
	if scale.WorkerUsed, err = privateMemory(h.worker); err != nil {
		return scale, err
	}
	if err := s.propagate(ctx, h, &scale); err != nil {
		return scale, err
	}
	return scale, h.account(&scale)
}

// touchAll sends a request to every host.
func (h *headgate) touchAll(ctx context.Context, ingresses int) error {
	c := h.client()
	defer c.close()
	for i := range ingresses {
		if err := c.until(ctx, hostName(i), http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

// propagate adds and removes a host, one after the other, beside a client of
// another host.
func (s *stage) propagate(ctx context.Context, h *headgate, scale *Scale) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	other := watch(watching, h, hostName(scale.Ingresses/2))
	c := h.client()
	defer c.close()
	var times []float64
	for i := range scale.Samples {
		elapsed, err := s.addHost(ctx, h, c, i)
		if err != nil {
			return err
		}
		times = append(times, milliseconds(elapsed))
	}
	stop()
	<-other.done
	scale.P50, scale.P99, scale.Max = percentile(times, 50), percentile(times, 99), percentile(times, 100)
	scale.Requests, scale.Lost = other.requests, other.lost
	return nil
}

// addHost returns the time from the rename of a new host's manifest into the
// folder to its first 200. It removes the host again.
func (s *stage) addHost(ctx context.Context, h *headgate, c *client, i int) (time.Duration, error) {
	name := fmt.Sprintf("new-%05d", i)
	host := name + ".example.com"
	// Headgate does not read the file under this name, and reads it at once when it is renamed within the folder.
	waiting, manifest := filepath.Join(h.folder, name+".new"), filepath.Join(h.folder, name+".yaml")
	if err := os.WriteFile(waiting, []byte(ingress(name, host, "")), 0o644); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := os.Rename(waiting, manifest); err != nil {
		return 0, err
	}
	if err := c.until(ctx, host, http.StatusOK); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	if err := os.Remove(manifest); err != nil {
		return 0, err
	}
	err := c.until(ctx, host, http.StatusNotFound)
	time.Sleep(quiet)
	return elapsed, err
}

// account reads what is known when all is over.
func (h *headgate) account(scale *Scale) error {
	conf, err := h.conf()
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(conf))
	scale.ConfBytes, scale.ConfHash = len(conf), hex.EncodeToString(sum[:])
	if scale.Reloads, err = h.reloads(); err != nil {
		return err
	}
	pid := h.process.cmd.Process.Pid
	if scale.ControllerPeak, err = status(pid, "VmHWM"); err != nil {
		return err
	}
	scale.ControllerNow, err = status(pid, "VmRSS")
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
