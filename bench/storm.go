package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// stormSize is how many Ingresses are created, and Services changed, at once.
const stormSize = 1000

// A Storm is many changes as fast as the API server takes them.
type Storm struct {
	// Ingresses there were before.
	Ingresses int  `json:"ingresses"`
	Created   Wave `json:"created_ingresses"`
	Changed   Wave `json:"changed_endpoints"`
	Reloads   int  `json:"reloads"`
}

// A Wave is one half of the storm. Its times count from the first request to
// the API server.
type Wave struct {
	Changes int `json:"changes"`
	// Acknowledged is when the API server had taken all, and Right when every
	// host had answered as it should; asking them all is part of it.
	Acknowledged float64 `json:"acknowledged_ms"`
	Right        float64 `json:"right_ms"`
	// CPU is the controller's, in seconds.
	CPU   float64 `json:"controller_cpu_s"`
	Wrong int     `json:"wrong_answers"`
	// Bystander asks for a host that nothing happens to; in the second wave it
	// asks for the hosts whose endpoints change.
	Bystander Bystander `json:"bystander"`
}

func (k *kube) storm(ctx context.Context, h *headgate) (Storm, error) {
	storm := Storm{Ingresses: k.created}
	c := h.client()
	defer c.close()
	hosts, asks := make([]string, stormSize), make([]ask, stormSize)
	for i := range hosts {
		hosts[i] = hostName(i)
	}
	var err error
	storm.Created, err = h.wave(ctx, asks, hosts[:1], func(making context.Context, i int) error {
		host := fmt.Sprintf("storm-%05d.example.com", i)
		asks[i] = c.expect(ctx, host, http.StatusNotFound, isOK)
		return k.createIngress(making, fmt.Sprintf("storm-%05d", i), host, i, "")
	})
	if err != nil {
		return storm, err
	}
	first := k.freshAddresses(stormSize)
	storm.Changed, err = h.wave(ctx, asks, hosts, func(making context.Context, i int) error {
		fresh, err := k.moveEndpoints(making, i, first+i*endpointsEach)
		asks[i] = c.expect(ctx, hosts[i], http.StatusOK, from(fresh))
		return err
	})
	if err != nil {
		return storm, err
	}
	storm.Reloads, err = h.reloads()
	return storm, err
}

// wave makes changes in parallel, beside a client of some hosts, and asks
// until all show.
func (h *headgate) wave(ctx context.Context, asks []ask, hosts []string, change func(context.Context, int) error) (Wave, error) {
	w := Wave{Changes: len(asks)}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	other := watch(watching, h, hosts...)
	pid := h.process.cmd.Process.Pid
	used, err := processTime(pid)
	if err != nil {
		return w, err
	}
	begin := time.Now()
	if err := parallel(ctx, 0, len(asks), change); err != nil {
		return w, err
	}
	w.Acknowledged = milliseconds(time.Since(begin))
	for _, ask := range asks {
		wrong, err := await(ctx, ask)
		if err != nil {
			return w, err
		}
		w.Wrong += wrong
	}
	w.Right = milliseconds(time.Since(begin))
	stop()
	<-other.done
	w.Bystander = Bystander{other.requests, other.lost}
	now, err := processTime(pid)
	w.CPU = (now - used).Seconds()
	return w, err
}

// processTime is what all threads of a process have used, in steps of 10 ms.
func processTime(pid int) (time.Duration, error) {
	const tick = 10 * time.Millisecond
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, behind, _ := strings.Cut(string(text), ") ")
	words := strings.Fields(behind)
	if len(words) < 13 {
		return 0, fmt.Errorf("read the stat of %d: it is too short", pid)
	}
	var total time.Duration
	for _, word := range words[11:13] {
		n, err := strconv.Atoi(word)
		if err != nil {
			return 0, fmt.Errorf("read the stat of %d: %w", pid, err)
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}
