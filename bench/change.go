package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Change is one kind of change, measured from the API server's
// acknowledgement to the first answer that shows it.
type Change struct {
	Name    string  `json:"name"`
	Samples int     `json:"samples"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
	// Wrong are the answers that were neither the ones before the change nor
	// the ones after it, and those that did not come.
	Wrong int `json:"wrong_answers"`
}

// A step makes one change for a sample; once that is acknowledged, ask shows
// what it has come to.
type step struct {
	name string
	make func(ctx context.Context, sample int) (ask, error)
}

// An ask sends one request.
type ask func() verdict

// A verdict on an answer.
type verdict int

const (
	before verdict = iota
	after
	wrong
)

// change makes all kinds of changes in turn, beside a client of another host.
func (k *kube) change(ctx context.Context, h *headgate, samples int, scale *ClusterScale) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	// No sample touches the last host.
	other := watch(watching, h, hostName(k.created-1))
	c := h.client()
	defer c.close()
	steps := k.steps(h, c)
	times := make([][]float64, len(steps))
	for _, step := range steps {
		scale.Changes = append(scale.Changes, Change{Name: step.name, Samples: samples})
	}
	for sample := range samples {
		for i, step := range steps {
			ask, err := step.make(ctx, sample)
			if err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
			begin := time.Now()
			wrong, err := await(ctx, ask)
			if err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
			times[i] = append(times[i], milliseconds(time.Since(begin)))
			scale.Changes[i].Wrong += wrong
			time.Sleep(quiet)
		}
	}
	stop()
	<-other.done
	for i := range scale.Changes {
		of := &scale.Changes[i]
		of.P50, of.P99, of.Max = percentile(times[i], 50), percentile(times[i], 99), percentile(times[i], 100)
	}
	scale.Bystander = Bystander{other.requests, other.lost}
	return nil
}

func (k *kube) steps(h *headgate, c *client) []step {
	// All but the last host take their turns.
	turn := func(sample int) int { return sample % (k.created - 1) }
	name := func(sample int) string { return fmt.Sprintf("new-%05d", sample) }
	return []step{
		{"new host", func(ctx context.Context, sample int) (ask, error) {
			host := name(sample) + ".example.com"
			return c.expect(ctx, host, http.StatusNotFound, isOK),
				k.createIngress(ctx, name(sample), host, turn(sample), "")
		}},
		{"endpoints", func(ctx context.Context, sample int) (ask, error) {
			fresh, err := k.moveEndpoints(ctx, turn(sample), k.freshAddresses(1))
			return c.expect(ctx, hostName(turn(sample)), http.StatusOK, from(fresh)), err
		}},
		{"certificate", func(ctx context.Context, sample int) (ask, error) {
			return k.renewCertificate(ctx, h, turn(sample*k.certificateEvery)/k.certificateEvery*k.certificateEvery)
		}},
		{"deleted host", func(ctx context.Context, sample int) (ask, error) {
			gone := func(got answer) bool { return got.status == http.StatusNotFound }
			return c.expect(ctx, name(sample)+".example.com", http.StatusOK, gone),
				k.client.NetworkingV1().Ingresses(k.namespaceOf(turn(sample))).Delete(ctx, name(sample), metav1.DeleteOptions{})
		}},
	}
}

func isOK(got answer) bool { return got.status == http.StatusOK }

// from reports whether one of the endpoints answered.
func from(addresses map[string]bool) func(answer) bool {
	return func(got answer) bool { return isOK(got) && addresses[got.body] }
}

// renewCertificate gives a host a new certificate.
func (k *kube) renewCertificate(ctx context.Context, h *headgate, host int) (ask, error) {
	old, err := h.handshake(ctx, hostName(host))
	if err != nil {
		return nil, err
	}
	pair, err := newCertificate(hostName(host))
	if err != nil {
		return nil, err
	}
	in := k.namespaceOf(host)
	_, err = k.client.CoreV1().Secrets(in).Update(ctx, tlsSecret(in, serviceName(host), pair), metav1.UpdateOptions{})
	return func() verdict {
		shown, err := h.handshake(ctx, hostName(host))
		switch {
		case err == nil && shown == pair.der:
			return after
		case err == nil && shown == old:
			return before
		}
		return wrong
	}, err
}

// expect asks for a host that answers with a status at first.
func (c *client) expect(ctx context.Context, host string, first int, changed func(answer) bool) ask {
	return func() verdict {
		got, err := c.get(ctx, host)
		switch {
		case err == nil && changed(got):
			return after
		case err == nil && got.status == first:
			return before
		}
		return wrong
	}
}

// await sends requests until the change shows, and counts wrong answers.
func await(ctx context.Context, ask ask) (int, error) {
	const (
		timeout = 30 * time.Second
		// pause leaves the cores to those who do the work; it is what a time may
		// be too long by.
		pause = 200 * time.Microsecond
	)
	deadline := time.Now().Add(timeout)
	count := 0
	for {
		switch ask() {
		case after:
			return count, nil
		case wrong:
			count++
		}
		if err := ctx.Err(); err != nil {
			return count, err
		}
		if time.Now().After(deadline) {
			return count, fmt.Errorf("the change does not show after %v", timeout)
		}
		time.Sleep(pause)
	}
}
