package dataplane_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// checkCounts: over reloads and kills of workers, each request is in a series, or is known to be
// lost; and a new controller begins at 0.
func checkCounts(t *testing.T, binary string) {
	manifests := headgatetest.Service("one") + headgatetest.Endpoints("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("web", "a.test", "/", "one")
	start := func() *program {
		p := startProgram(t, binary, manifests+headgatetest.Config("worker-processes: 2"), "--enable-metrics")
		p.open(true)
		headgatetest.Eventually(t, "the program serves", func() bool {
			status, _ := p.health()
			return status == http.StatusOK
		})
		return p
	}
	p := start()
	sent := 0
	for round := range 3 {
		sent += p.askMany(200)
		// All are over, and most of them are not reported yet.
		for _, pid := range p.workers() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan int)
		go func() { done <- p.askMany(200) }()
		p.write("manifests/all.yaml", manifests+headgatetest.Config("worker-processes: 2", fmt.Sprintf("keep-alive-requests: %d", 2000+round)), 0o644)
		headgatetest.Eventually(t, "a reload", func() bool { return p.sum("headgate_reloads_total") == round+1 })
		sent += <-done
	}
	p.wantCounted(sent)
	if lost := p.sum(`headgate_uncounted_requests_total{reason="lost"}`); lost == 0 {
		t.Log("each worker had reported all before it was killed")
	} else {
		t.Logf("%d of %d requests were lost", lost, sent)
	}
	p.end()

	p = start()
	p.wantCounted(p.askMany(50))
}

// wantCounted waits until as many requests are counted, in series or as lost.
func (p *program) wantCounted(want int) {
	p.t.Helper()
	last := -1
	defer func() {
		if p.t.Failed() {
			p.t.Logf("%d requests are counted, want %d", last, want)
		}
	}()
	headgatetest.Eventually(p.t, "all requests are counted", func() bool {
		last = p.sum(requestsFamily+"{") + p.sum(uncountedFamily+"{")
		return last == want
	})
}

// sum adds up the samples whose lines begin with a text.
func (p *program) sum(begin string) int {
	sum := 0
	for line := range strings.Lines(p.metrics()) {
		if strings.HasPrefix(line, begin) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				p.t.Fatal(err)
			}
			sum += int(value)
		}
	}
	return sum
}

// askMany sends requests over connections of their own. NGINX closes a connection behind its
// last request: that is over then, and counted. It returns how many were answered.
func (p *program) askMany(n int) int {
	const clients = 4
	var answered atomic.Int64
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			for range n / clients {
				if err := p.askAndClose(); err != nil {
					p.t.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	wait.Wait()
	return int(answered.Load())
}

func (p *program) askAndClose() error {
	// Without a worker, the connection waits for the next one.
	connection, err := net.Dial("tcp", headgatetest.Address(p.http))
	if err != nil {
		return err
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	text, err := io.ReadAll(connection)
	if err == nil && !bytes.HasPrefix(text, []byte("HTTP/1.1 200")) {
		err = fmt.Errorf("the response begins with %.60q", text)
	}
	return err
}

// workers are the pids of NGINX's workers.
func (p *program) workers() (list []int) {
	p.t.Helper()
	for _, pid := range childrenOf(p.t, p.master()) {
		// One that has just ended has none.
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte("worker process")) {
			list = append(list, pid)
		}
	}
	return list
}
